package site

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestFailuresHaveAStatusATitleAndAnAdvice(t *testing.T) {
	t.Parallel()
	for _, status := range []int{400, 403, 404, 405, 413, 429, 500, 502, 503} {
		failure := failureOf(status)
		if failure.Status != status || failure.Title == "" || !strings.HasSuffix(failure.Advice, ".") {
			t.Errorf("%d is explained as %+v", status, failure)
		}
	}
	if got := failureOf(http.StatusOK).Status; got != http.StatusInternalServerError {
		t.Errorf("a failure without a failing status answers %d", got)
	}
}

func TestWaitsAreShownInTheirUnit(t *testing.T) {
	t.Parallel()
	for wait, want := range map[time.Duration]string{
		time.Millisecond: "1 second", 90 * time.Second: "90 seconds", 2*time.Minute + 1: "3 minutes", time.Hour: "60 minutes", 24 * time.Hour: "24 hours",
	} {
		if got := waitText(wait); got != want {
			t.Errorf("%s is shown as %q instead of %q", wait, got, want)
		}
	}
}
