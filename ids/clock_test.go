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
