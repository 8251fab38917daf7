package cashier

import (
	"context"

	"github.com/google/uuid"

	"purser/ids"
	"purser/jobs"
)

// settleIdentity finishes what follows a wallet's new identity: the log of its requests
// and denials, and its seal.
func (c *Cashier) settleIdentity(ctx context.Context, job jobs.Job) (next int64, err error) {
	id, err := uuid.Parse(job.Object)
	if err != nil {
		return 0, err
	}
	if next, err = c.options.Store.App(job.Scope).SettleIdentity(ctx, ids.ID(id), c.nowAt(job.ClockOffset)); err != nil {
		return 0, err
	}
	return next, c.options.Store.Verification(job.Scope).Reseal(ctx, ids.ID(id), next == 0)
}
