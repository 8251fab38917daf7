package store

import (
	"testing"

	"purser/ids"
	"purser/metering"
)

// TestEventsSendOnlyTheRareColumnsThatTheyHave fills each rare field alone: a field that
// no group counts would be lost.
func TestEventsSendOnlyTheRareColumnsThatTheyHave(t *testing.T) {
	t.Parallel()
	const now, deduplication, terms = 1000, 1, 2
	plain := metering.Event{OccurredAt: now, Charge: metering.Charge{BasisPoints: metering.ListPrice, Amount: 7}}
	limited := metering.Allowance{Limit: 10, Used: 1, Period: metering.Period{Start: 1, End: 2}, Overage: metering.OverageBlock}
	quoted, same := metering.Amount(8), metering.Amount(7)
	for name, c := range map[string]struct {
		change func(*metering.Event)
		want   int
	}{
		"nothing":                     {func(*metering.Event) {}, 0},
		"the amount that is charged":  {func(e *metering.Event) { e.Quoted = &same }, 0},
		"an entity":                   {func(e *metering.Event) { e.EntityID = "x" }, deduplication},
		"a period":                    {func(e *metering.Event) { e.Period = metering.Period{Start: 1, End: 2} }, deduplication},
		"a debt":                      {func(e *metering.Event) { e.DebtAfter = 1 }, terms},
		"another time":                {func(e *metering.Event) { e.OccurredAt = now - 1 }, terms},
		"a multiplier":                {func(e *metering.Event) { e.Charge.BasisPoints = 5000 }, terms},
		"another amount":              {func(e *metering.Event) { e.Quoted = &quoted }, terms},
		"an allowance":                {func(e *metering.Event) { e.Allowance = limited }, terms},
		"an entity and an allowance":  {func(e *metering.Event) { e.EntityID, e.Allowance = "x", limited }, deduplication | terms},
		"an amount that was not due":  {func(e *metering.Event) { e.Quoted, e.DeduplicatedFrom = &same, ids.New() }, terms},
		"a deduplicated one's period": {func(e *metering.Event) { e.Period, e.DeduplicatedFrom = metering.Period{Start: 1, End: 2}, ids.New() }, deduplication},
	} {
		event := plain
		c.change(&event)
		b := &appBatch{records: []record{{Event: plain}, {Event: event}}}
		if got := b.rareGroups(now); got != c.want {
			t.Errorf("%s: the batch sends the groups %b, want %b", name, got, c.want)
		}
	}
}
