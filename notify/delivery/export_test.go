package delivery

import "context"

// PrepareAll runs the periodic task.
func (d *Dispatcher) PrepareAll(ctx context.Context) error { return d.prepareAll(ctx) }

// AnnounceKeys runs the task that finds expiring keys.
func (d *Dispatcher) AnnounceKeys(ctx context.Context) error { return d.announceKeys(ctx) }

// PruneAll runs the retention.
func (d *Dispatcher) PruneAll(ctx context.Context) error { return d.pruneAll(ctx) }
