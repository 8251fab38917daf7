package web

import (
	"bytes"
	"log/slog"
	"strings"
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

func TestRefusedSignInsAreLoggedWithoutTheirSecrets(t *testing.T) {
	t.Parallel()
	r, _ := newClockHarness(t)
	var log bytes.Buffer
	r.site.log = slog.New(slog.NewJSONHandler(&log, nil))
	const secret = "canary-password"
	for i := range alarmThreshold {
		r.browser().login(t, strings.Repeat("x", i%40+1)+"@canary.example", strings.Repeat(secret, 10))
	}
	if !strings.Contains(log.String(), "many sign-ins refused") {
		t.Error("nobody is called")
	}
	if strings.Contains(log.String(), secret) || strings.Contains(log.String(), "canary.example") {
		t.Error("the log holds what was typed")
	}
}
