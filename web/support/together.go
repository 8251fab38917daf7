package support

import (
	"context"
	"fmt"
	"runtime/debug"

	"golang.org/x/sync/errgroup"
)

// together runs reads at the same time and returns the first error. A panic is an error:
// outside of the request's goroutine it would end the server.
func together(ctx context.Context, reads ...func(context.Context) error) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, read := range reads {
		group.Go(func() (err error) {
			defer func() {
				if cause := recover(); cause != nil {
					err = fmt.Errorf("web: panic: %v\n%s", cause, debug.Stack())
				}
			}()
			return read(ctx)
		})
	}
	return group.Wait()
}
