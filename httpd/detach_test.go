package httpd_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"purser/httpd"
)

func TestADetachedRequestEndsByItsOwnDeadline(t *testing.T) {
	t.Parallel()
	type key struct{}
	client, hangUp := context.WithCancel(context.WithValue(t.Context(), key{}, "kept"))
	hangUp()

	ctx, cancel := httpd.Detach(client, time.Hour)
	at, limited := ctx.Deadline()
	if ctx.Err() != nil || ctx.Value(key{}) != "kept" || !limited || time.Until(at) > time.Hour || time.Until(at) < time.Minute {
		t.Errorf("a request whose client left: %v, value %v, deadline %v", ctx.Err(), ctx.Value(key{}), at)
	}
	derived, end := context.WithCancel(ctx)
	defer end()
	if context.Cause(derived) != nil || derived.Value(key{}) != "kept" {
		t.Errorf("a derived context: %v, value %v", context.Cause(derived), derived.Value(key{}))
	}
	cancel()
	<-derived.Done()
	<-ctx.Done()
	if !errors.Is(ctx.Err(), context.Canceled) {
		t.Errorf("a request that ended: %v", ctx.Err())
	}

	late, cancelLate := httpd.Detach(t.Context(), 0)
	defer cancelLate()
	if !errors.Is(late.Err(), context.DeadlineExceeded) {
		t.Errorf("before Done: %v", late.Err())
	}
	<-late.Done()
	if !errors.Is(late.Err(), context.DeadlineExceeded) {
		t.Errorf("after Done: %v", late.Err())
	}

	ended, cancelEnded := httpd.Detach(t.Context(), time.Hour)
	cancelEnded()
	if !errors.Is(ended.Err(), context.Canceled) {
		t.Errorf("ended before Done: %v", ended.Err())
	}
	<-ended.Done()
}
