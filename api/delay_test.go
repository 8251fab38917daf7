package api

import (
	"testing"
	"time"
)

func TestRefusalsWaitLongerTheMoreOfThemWait(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		waiting     int64
		least, most time.Duration
	}{
		{1, refusalDelay, refusalDelay + 10*time.Millisecond},
		{refusalsPerDelay, 2 * refusalDelay, 2 * refusalDelay},
		{4 * refusalsPerDelay, maxRefusalDelay, maxRefusalDelay},
		{maxDelayed, maxRefusalDelay, maxRefusalDelay},
	} {
		if got := refusalDelayAt(c.waiting); got < c.least || got > c.most {
			t.Errorf("beside %d the mean delay is %s", c.waiting, got)
		}
	}
}
