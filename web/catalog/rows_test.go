package catalog

import (
	"slices"
	"testing"

	"purser/billing"
)

func TestRowsOfAForm(t *testing.T) {
	t.Parallel()
	full := make([]int, billing.MaxPlanItems)
	if got := withRow(full, -1, 1); len(got) != billing.MaxPlanItems {
		t.Errorf("a full list became %d rows", len(got))
	}
	rows := []int{1, 2, 3}
	if got := withRow(rows, 1, 0); !slices.Equal(got, []int{1, 3}) || !slices.Equal(rows, []int{1, 2, 3}) {
		t.Errorf("got %v of %v", got, rows)
	}
}
