package support

import (
	"context"
	"errors"
	"strings"
	"testing"
)

func TestReadsTogether(t *testing.T) {
	t.Parallel()
	ok := func(context.Context) error { return nil }
	refused := errors.New("refused")
	// The first read goes on until the error of the other one ends it.
	waits := func(ctx context.Context) error {
		<-ctx.Done()
		return nil
	}
	if err := together(t.Context(), ok, ok); err != nil {
		t.Error(err)
	}
	if err := together(t.Context(), waits, func(context.Context) error { return refused }); !errors.Is(err, refused) {
		t.Errorf("%v, expected %v", err, refused)
	}
	if err := together(t.Context(), waits, func(context.Context) error { panic("no such row") }); err == nil || !strings.Contains(err.Error(), "no such row") {
		t.Errorf("%v after a panic", err)
	}
}
