package engine

import (
	"maps"
	"slices"
)

// Page is the part of a list that a caller wants.
type Page struct {
	Limit  int
	After  string // the id that the page comes after
	Before string // the id that the page comes before
}

// Within is a filter on when an object was made; nil bounds hold nothing.
type Within struct {
	After, From, Before, To *Time
}

// Holds reports whether the instant lies within.
func (r Within) Holds(t Time) bool {
	return (r.After == nil || t > *r.After) && (r.From == nil || t >= *r.From) &&
		(r.Before == nil || t < *r.Before) && (r.To == nil || t <= *r.To)
}

// List gives a page of the objects that are kept by the filter, newest first,
// and whether more lie in the direction of the page.
func List[T Object](all map[string]T, page Page, keep func(T) bool) (found []T, more bool, err error) {
	after, before := int64(-1), int64(-1)
	if page.After != "" {
		if after, err = number(all, "starting_after", page.After); err != nil {
			return nil, false, err
		}
	}
	if page.Before != "" {
		if before, err = number(all, "ending_before", page.Before); err != nil {
			return nil, false, err
		}
	}
	kept := slices.Collect(maps.Values(all))
	kept = slices.DeleteFunc(kept, func(o T) bool {
		n := o.head().Nth
		return after >= 0 && n >= after || before >= 0 && n <= before || !keep(o)
	})
	slices.SortFunc(kept, func(a, b T) int { return int(b.head().Nth - a.head().Nth) })
	if len(kept) <= page.Limit {
		return kept, false, nil
	}
	if page.Before != "" {
		return kept[len(kept)-page.Limit:], true, nil
	}
	return kept[:page.Limit], true, nil
}

func number[T Object](all map[string]T, param, id string) (int64, error) {
	o, ok := all[id]
	if !ok {
		return 0, missing("object", param, id)
	}
	return o.head().Nth, nil
}
