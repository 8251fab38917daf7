package api

import (
	"context"
	"strings"
	"testing"

	"purser/fault"
)

func TestArchivingMeanwhileRefusesTheKey(t *testing.T) {
	t.Parallel()
	c := &call{}
	if err := c.archivedKeyError(fault.New(fault.Archived)); !fault.Is(err, fault.RevokedAPIKey) || !strings.Contains(err.Error(), "archived") {
		t.Errorf("it is refused with %v", err)
	}
	if err := c.archivedKeyError(fault.New(fault.PlanNotFound)); !fault.Is(err, fault.PlanNotFound) {
		t.Errorf("another refusal becomes %v", err)
	}
	if err := c.archivedKeyError(nil); err != nil {
		t.Error(err)
	}
}

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
