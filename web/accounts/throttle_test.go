package accounts

import (
	"testing"
	"time"
)

func TestAlarm(t *testing.T) {
	t.Parallel()
	var a alarm
	rings := func(now int64, times int) (rung int) {
		for range times {
			if a.recordRefusal(now) {
				rung++
			}
		}
		return rung
	}
	minute := time.Minute.Milliseconds()
	if rung := rings(10*minute, alarmThreshold-1); rung != 0 {
		t.Error("rings below the limit")
	}
	if rung := rings(11*minute, alarmThreshold-1); rung != 0 {
		t.Error("adds up what lies minutes apart")
	}
	if rung := rings(11*minute, 3*alarmThreshold); rung != 1 {
		t.Errorf("rings %d times in a minute", rung)
	}
	if rung := rings(12*minute, alarmThreshold); rung != 1 {
		t.Error("stays silent in the next minute")
	}
}
