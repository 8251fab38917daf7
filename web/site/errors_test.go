package site

import (
	"net/http"
	"strings"
	"testing"
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
