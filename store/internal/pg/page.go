package pg

import "purser/ids"

// Page asks for at most Limit items that are older than Before. The zero Before
// asks for the newest.
type Page struct {
	Before ids.ID
	Limit  int
}

// Start is the id below which the page starts.
func (p Page) Start() ids.ID {
	if !p.Before.IsZero() {
		return p.Before
	}
	var last ids.ID
	for i := range last {
		last[i] = 0xff
	}
	return last
}

// OneMore is how many rows to ask for: the extra one tells that the list goes on.
func (p Page) OneMore() int { return p.Limit + 1 }

// Cut takes the extra row off and reports whether it was there.
func Cut[T any](list []T, limit int) (page []T, more bool) {
	if len(list) > limit {
		return list[:limit], true
	}
	return list, false
}
