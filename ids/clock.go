package ids

import (
	"bytes"
	"encoding/binary"
	"sync"
	"sync/atomic"

	"github.com/google/uuid"
)

// clock is the clock that New goes by, or nil for the machine's.
var clock atomic.Pointer[func() int64]

// UseClock makes New take the time from a clock that all nodes share, in
// nanoseconds since 1970: ids of different nodes then sort by the same time. It is
// called once, before a server makes its first id.
func UseClock(now func() int64) { clock.Store(&now) }

// stamps orders the ids of one nanosecond, and those after a step back of the clock.
var stamps struct {
	sync.Mutex
	last int64
}

// newAt makes an id of a time: 48 bits of milliseconds, 12 bits of their fraction,
// 62 random bits, and the version and variant of a UUIDv7 between them.
func newAt(nanos int64) ID {
	id := ID(uuid.New())
	millis, fraction := nanos/1e6, nanos%1e6>>8
	stamp := millis<<12 | fraction
	stamps.Lock()
	stamp = max(stamp, stamps.last+1)
	stamps.last = stamp
	stamps.Unlock()
	id.setStamp(stamp)
	return id
}

func (id *ID) setStamp(stamp int64) {
	binary.BigEndian.PutUint64(id[:8], uint64(stamp>>12)<<16|7<<12|uint64(stamp&0xfff))
}

// After is the id, or when the other one does not sort before it, an id right after that
// with the same random bits: a node whose clock is ahead has made the other one.
func (id ID) After(other ID) ID {
	if bytes.Compare(id[:], other[:]) <= 0 {
		high := binary.BigEndian.Uint64(other[:8])
		id.setStamp(int64(high>>16<<12|high&0xfff) + 1)
	}
	return id
}
