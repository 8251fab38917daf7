package people

import (
	"context"
	"slices"
	"testing"

	"purser/tenancy"
)

func TestTakenSlugsAreNotTried(t *testing.T) {
	t.Parallel()
	rows := []string{"chat"}
	for n := 2; n <= 150; n++ {
		rows = append(rows, tenancy.NumberedSlug("chat", n))
	}
	tries := 0
	insert := func(_ context.Context, slug string) (int64, error) {
		tries++
		if slices.Contains(rows, slug) {
			return 0, nil
		}
		rows = append(rows, slug)
		return 1, nil
	}
	taken := func(context.Context, []string) ([]string, error) {
		known := slices.Clone(rows)
		rows = append(rows, "chat-151") // by another transaction
		return known, nil
	}
	slug, err := insertUnderFreeSlug(t.Context(), "chat", taken, insert)
	if err != nil || slug != "chat-152" || tries != 3 {
		t.Errorf("got %s after %d tries, %v", slug, tries, err)
	}
	for n := 151; n <= maxSlugs; n++ {
		rows = append(rows, tenancy.NumberedSlug("chat", n))
	}
	tries = 0
	if slug, err = insertUnderFreeSlug(t.Context(), "chat", taken, insert); err != nil || tries != 2 || len(slug) <= len("chat-1000") {
		t.Errorf("after all numbers it is %s, with %d tries, %v", slug, tries, err)
	}
}
