package sketch

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"math/bits"
	"slices"

	"purser/ids"
)

const (
	// Up to this many distinct ids a sketch is exact.
	Exact = 512
	// Past them it is a HyperLogLog of 2^12 registers: right to 1.6 in a hundred, in
	// the four kilobytes that the exact ids took as well.
	sketchBits      = 12
	sketchRegisters = 1 << sketchBits
)

// The first byte of a stored sketch says which of the two it is.
const (
	sketchOfHashes    = 1
	sketchOfRegisters = 2
)

// Sketch counts different ids, and can be put together with another without
// counting anyone twice. It is exact while it is small.
type Sketch struct {
	hashes    map[uint64]struct{} // nil once there are registers
	registers []byte
}

func New() *Sketch { return &Sketch{hashes: make(map[uint64]struct{})} }

// Add takes an id in.
func (s *Sketch) Add(id ids.ID) {
	s.addHash(mix(binary.BigEndian.Uint64(id[:8]) ^ mix(binary.BigEndian.Uint64(id[8:]))))
}

func (s *Sketch) addHash(hash uint64) {
	if s.registers != nil {
		s.register(hash)
		return
	}
	s.hashes[hash] = struct{}{}
	if len(s.hashes) > Exact {
		s.toRegisters()
	}
}

// toRegisters gives up being exact.
func (s *Sketch) toRegisters() {
	s.registers = make([]byte, sketchRegisters)
	for hash := range s.hashes {
		s.register(hash)
	}
	s.hashes = nil
}

// register keeps, for the register that a hash falls to, the longest run of zeros.
func (s *Sketch) register(hash uint64) {
	run := byte(bits.LeadingZeros64(hash<<sketchBits|1<<(sketchBits-1)) + 1)
	if at := hash >> (64 - sketchBits); s.registers[at] < run {
		s.registers[at] = run
	}
}

// Merge takes in all that another sketch has seen.
func (s *Sketch) Merge(other *Sketch) {
	if other.registers == nil {
		for hash := range other.hashes {
			s.addHash(hash)
		}
		return
	}
	if s.registers == nil {
		s.toRegisters()
	}
	for i, run := range other.registers {
		s.registers[i] = max(s.registers[i], run)
	}
}

// Count is how many different ids it has seen, and whether that is exact.
func (s *Sketch) Count() (n int64, exact bool) {
	if s.registers == nil {
		return int64(len(s.hashes)), true
	}
	sum, empty := 0.0, 0
	for _, run := range s.registers {
		sum += 1 / float64(uint64(1)<<run)
		if run == 0 {
			empty++
		}
	}
	const registers = float64(sketchRegisters)
	estimate := 0.7213 / (1 + 1.079/registers) * registers * registers / sum
	if estimate <= 2.5*registers && empty > 0 { // few ids: the empty registers are more exact
		estimate = registers * math.Log(registers/float64(empty))
	}
	return int64(math.Round(estimate)), false
}

// Encode writes the sketch for its column. The same ids give the same bytes.
func (s *Sketch) Encode() []byte {
	if s.registers != nil {
		return append([]byte{sketchOfRegisters}, s.registers...)
	}
	text := []byte{sketchOfHashes}
	for _, hash := range slices.Sorted(maps.Keys(s.hashes)) {
		text = binary.BigEndian.AppendUint64(text, hash)
	}
	return text
}

// Decode reads what encode wrote. Nothing is an empty sketch.
func Decode(text []byte) (*Sketch, error) {
	s := New()
	switch {
	case len(text) == 0:
	case text[0] == sketchOfRegisters && len(text) == 1+sketchRegisters:
		s.hashes, s.registers = nil, slices.Clone(text[1:])
	case text[0] == sketchOfHashes && len(text)%8 == 1 && len(text) <= 1+8*Exact:
		for rest := text[1:]; len(rest) > 0; rest = rest[8:] {
			s.hashes[binary.BigEndian.Uint64(rest)] = struct{}{}
		}
	default:
		return nil, fmt.Errorf("store: a sketch of %d bytes is malformed", len(text))
	}
	return s, nil
}

// mix spreads the bits of an id, most of which are a time, over all 64. It is the
// finalizer of splitmix64, the same on every node.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
