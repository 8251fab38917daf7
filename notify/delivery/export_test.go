package delivery

import "context"

// PrepareAll runs the periodic task.
func (d *Dispatcher) PrepareAll(ctx context.Context) error { return d.prepareAll(ctx) }
