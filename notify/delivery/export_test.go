package delivery

import (
	"context"

	"purser/tenancy"
)

// PrepareAll runs the periodic task.
func (d *Dispatcher) PrepareAll(ctx context.Context) error { return d.prepareAll(ctx) }

// AnnounceKeys runs the task that finds expiring keys.
func (d *Dispatcher) AnnounceKeys(ctx context.Context) error { return d.announceKeys(ctx) }

// Prepare numbers the notifications of one application.
func (d *Dispatcher) Prepare(ctx context.Context, scope tenancy.Scope) error {
	return d.prepare(ctx, scope)
}

// PruneAll runs the retention.
func (d *Dispatcher) PruneAll(ctx context.Context) error { return d.pruneAll(ctx) }
