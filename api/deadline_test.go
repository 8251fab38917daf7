package api

import (
	"context"
	"testing"
)

func TestAnEventHasWhatIsLeftOfItsRequest(t *testing.T) {
	t.Parallel()
	if limit := (route{usage: true}).timeout(); limit != usageTimeout || limit >= requestTimeout {
		t.Errorf("an event may take %s", limit)
	}
	ctx, cancel := context.WithTimeout(t.Context(), usageTimeout)
	defer cancel()
	deadline, _ := ctx.Deadline()
	if got := (&call{ctx: ctx}).usage(nil, "").Deadline; got != deadline {
		t.Errorf("the engine may take until %s, and the request ends at %s", got, deadline)
	}
}
