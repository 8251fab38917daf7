package web

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
)

func TestRefusedSignInsAreLoggedWithoutTheirSecrets(t *testing.T) {
	t.Parallel()
	r, _ := newClockHarness(t)
	var log bytes.Buffer
	r.site.Log = slog.New(slog.NewJSONHandler(&log, nil))
	const secret = "canary-password"
	for i := range 100 {
		r.browser().login(t, strings.Repeat("x", i%40+1)+"@canary.example", strings.Repeat(secret, 10))
	}
	if !strings.Contains(log.String(), "many sign-ins refused") {
		t.Error("refused sign-ins are not logged")
	}
	if strings.Contains(log.String(), secret) || strings.Contains(log.String(), "canary.example") {
		t.Error("the log holds what was typed")
	}
}
