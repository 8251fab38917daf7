package delivery

import "context"

// PrepareAll runs the periodic task.
func (d *Dispatcher) PrepareAll(ctx context.Context) error { return d.prepareAll(ctx) }

// PruneAll runs the retention.
func (d *Dispatcher) PruneAll(ctx context.Context) error { return d.pruneAll(ctx) }
