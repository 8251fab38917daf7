package rollup

import (
	"encoding/binary"
	"errors"

	"purser/metering"
)

// ValueSums are the sums of one value of a dimension.
type ValueSums struct {
	Value string
	Sums
}

// packVersion begins a pack, so that its form can change.
const packVersion = 1

// PackValues writes values with their sums, in the order of the list. Small numbers take
// few bytes: a pack of a thousand values has some twenty kilobytes.
func PackValues(list []ValueSums) []byte {
	pack := []byte{packVersion}
	for _, v := range list {
		pack = binary.AppendUvarint(pack, uint64(len(v.Value)))
		pack = append(pack, v.Value...)
		pack = binary.AppendUvarint(pack, uint64(v.Events))
		pack = binary.AppendUvarint(pack, uint64(v.Deduplicated))
		for _, total := range []metering.Total{v.Quantity, v.Included, v.Charged} {
			hi, lo := total.Halves()
			pack = binary.AppendUvarint(binary.AppendUvarint(pack, lo), hi)
		}
	}
	return pack
}

var errPack = errors.New("rollup: this is no pack of values")

// UnpackValues calls add with each value that PackValues wrote, in its order, and with
// where it begins. The sums are the same variable each time.
func UnpackValues(pack []byte, add func(at int, v *ValueSums)) error {
	if len(pack) == 0 || pack[0] != packVersion {
		return errPack
	}
	text := string(pack) // values are parts of it
	var v ValueSums
	r := packReader{pack: pack, at: 1}
	for r.at < len(pack) {
		at := r.at
		length := r.uvarint()
		if r.broken || length > uint64(len(pack)-r.at) {
			return errPack
		}
		v.Value = text[r.at : r.at+int(length)]
		r.at += int(length)
		v.Sums = r.sums()
		if r.broken || v.Events < 0 || v.Deduplicated < 0 {
			return errPack
		}
		add(at, &v)
	}
	return nil
}

// SumsAt reads the sums of the value that begins at a place of a pack. UnpackValues named
// the place.
func SumsAt(pack []byte, at int) Sums {
	r := packReader{pack: pack, at: at}
	r.at += int(r.uvarint())
	return r.sums()
}

// packReader reads numbers until one is broken.
type packReader struct {
	pack   []byte
	at     int
	broken bool
}

func (r *packReader) uvarint() uint64 {
	if r.at < len(r.pack) && r.pack[r.at] < 0x80 { // most numbers
		r.at++
		return uint64(r.pack[r.at-1])
	}
	number, n := binary.Uvarint(r.pack[r.at:])
	if n <= 0 {
		r.broken = true
		return 0
	}
	r.at += n
	return number
}

func (r *packReader) sums() Sums {
	events, deduplicated := r.uvarint(), r.uvarint()
	return Sums{Events: int64(events), Deduplicated: int64(deduplicated), Quantity: r.total(), Included: r.total(), Charged: r.total()}
}

func (r *packReader) total() metering.Total {
	lo := r.uvarint()
	return metering.TotalOf(r.uvarint(), lo)
}
