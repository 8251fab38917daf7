//go:build chaos

package store_test

import (
	"testing"
	"time"

	"purser/store/verify"
)

// TestChaosVerifySince measures a full pass over 200,000 entries of one wallet, and a
// pass since some minutes ago that finds 100 new ones. That the second reads no more
// than those is held by TestVerifySinceReadsInProportionToWhatIsNew.
func TestChaosVerifySince(t *testing.T) {
	b := keepBooks(t)
	b.addOldEvents(t, 200_000)
	started := time.Now()
	v := b.verify(t, verify.Options{Record: true})
	t.Logf("all: %d entries in %s, %.0f a second", v.Entries, time.Since(started), float64(v.Entries)/time.Since(started).Seconds())
	since := b.trackAhead(t, 100)
	for _, record := range []bool{true, false} { // new, and then only recent
		started = time.Now()
		v = b.verify(t, verify.Options{Since: since, Record: record})
		took := time.Since(started)
		t.Logf("since: %d entries in %s", v.Entries, took)
		if v.Entries != 100 || took > time.Second {
			t.Errorf("%d entries took %s", v.Entries, took)
		}
	}
}
