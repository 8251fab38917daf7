package ids

import (
	"bytes"
	"encoding/binary"
	"testing"
	"time"

	"github.com/google/uuid"
)

// Not parallel: the clock is the whole process's.
func TestIDsGoByTheSharedClock(t *testing.T) {
	defer clock.Store(nil)
	at := time.Date(2031, 5, 6, 7, 8, 9, 123_456_789, time.UTC)
	UseClock(func() int64 { return at.UnixNano() })
	defer func() { stamps.last = 0 }()

	var earlier ID
	for i := range 10_000 {
		if i == 5000 {
			at = at.Add(-time.Second) // a step back must not break the order
		}
		id := New()
		if u := uuid.UUID(id); u.Version() != 7 || u.Variant() != uuid.RFC4122 {
			t.Fatalf("%s is no UUIDv7", u)
		}
		if bytes.Compare(earlier[:], id[:]) >= 0 {
			t.Fatalf("%s comes after %s", id, earlier)
		}
		earlier = id
	}
	// 10,000 ids of one moment take up less than three milliseconds of order.
	millis := int64(binary.BigEndian.Uint64(append([]byte{0, 0}, earlier[:6]...)))
	if first := time.Date(2031, 5, 6, 7, 8, 9, 123_000_000, time.UTC).UnixMilli(); millis < first || millis > first+3 {
		t.Errorf("an id of %d says %d", first, millis)
	}
}

func TestAnIDSortsAfterAnother(t *testing.T) {
	t.Parallel()
	earlier, later := New(), New()
	if got := later.After(earlier); got != later {
		t.Errorf("%s became %s, after %s", later, got, earlier)
	}
	end := ID{0, 0, 0, 0, 0, 1, 0x7f, 0xff, 0xbf, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff} // of a millisecond
	for _, other := range []ID{later, earlier, end} {
		id := earlier
		if other == end {
			id = ID{7: 1, 8: 0x80}
		}
		got := id.After(other)
		u := uuid.UUID(got)
		if bytes.Compare(got[:], other[:]) <= 0 || u.Version() != 7 || u.Variant() != uuid.RFC4122 || !bytes.Equal(got[8:], id[8:]) {
			t.Errorf("after %s comes %s", other, got)
		}
		stamp := func(id ID) uint64 { return binary.BigEndian.Uint64(id[:8]) }
		if other != end && stamp(got)-stamp(other) > 1<<16 {
			t.Errorf("%s is long after %s", got, other)
		}
	}
}
