package web

import (
	"strings"
	"testing"
	"time"

	"purser/payments/sandbox/persist"
	"purser/tenancy"
	"purser/views/component"
)

// moveClock sets a test application's clock ahead, as its sandbox does.
func (r *harness) moveClock(t *testing.T, app tenancy.Application, offset time.Duration) {
	t.Helper()
	noError(t, r.db.SandboxAccounts().Update(t.Context(), app.ID, persist.Want{}, func(persist.Session) (persist.Change, error) {
		return persist.Change{Head: []byte("{}"), ClockOffset: offset.Milliseconds()}, nil
	}))
}

func TestAMovedClock(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.join(t, tenancy.Owner)
	pages := []string{r.appPath(), r.appPath("wallets"), r.appPath("plans"), r.appPath("keys"), r.appPath("settings"), r.appPath("quickstart")}

	t.Run("is not spoken of before it was moved", func(t *testing.T) {
		for _, path := range append(pages, r.orgPath()) {
			if strings.Contains(b.get(t, path).body, "ahead") {
				t.Errorf("%s speaks of it", path)
			}
		}
	})

	const offset = 400 * 24 * time.Hour
	r.moveClock(t, r.app, offset)
	t.Run("stands above every page of the application", func(t *testing.T) {
		for _, path := range pages {
			body := b.get(t, path).body
			_, strip, _ := strings.Cut(body, `class="test-strip"`)
			strip, _, _ = strings.Cut(strip, "</aside>")
			day := component.DayText(r.site.Now() + offset.Milliseconds())
			if !strings.Contains(strip, "Sandbox time:") || !strings.Contains(strip, "+400 days") || !strings.Contains(strip, day) {
				t.Errorf("%s says %s", path, strip)
			}
		}
	})
	t.Run("is named where the organization counts by it", func(t *testing.T) {
		if !strings.Contains(b.get(t, r.orgPath()).body, "Counted in sandbox time (+400 days).") {
			t.Error("it is not")
		}
	})
}
