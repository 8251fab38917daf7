package support

import (
	"slices"
	"time"

	"purser/views/component"
	"purser/web/site"
)

// sortOldest is the value of the parameter sort for lists in the order of creation.
const sortOldest = "oldest"

// keepOrder drops an order that a list doesn't have, so that its links are those of the
// order it is shown in.
func keepOrder(l site.Listing, orders ...string) {
	if !slices.Contains(orders, l.Filter.Get("sort")) {
		l.Filter.Del("sort")
	}
}

// byAge is the order of a column of times: newest first, or oldest first.
func byAge(l site.Listing) component.Sort {
	turned := site.Listing{Path: l.Path, Filter: l.Without("sort")}
	if l.Filter.Get("sort") == sortOldest {
		return component.Sort{Href: turned.At("", ""), Now: "ascending"}
	}
	s := component.Sort{Href: turned.At("sort", sortOldest)}
	if l.Filter.Get("sort") == "" {
		s.Now = "descending"
	}
	return s
}

// presets are links to common periods of a list with the filters from and to, which are
// days of the viewer.
func presets(req *site.Request, l site.Listing) (list []component.Tab) {
	today := time.UnixMilli(req.Now()).In(req.Zone())
	for _, p := range []struct {
		label string
		from  time.Time
	}{
		{"Today", today},
		{"7 days", today.AddDate(0, 0, -6)},
		{"30 days", today.AddDate(0, 0, -29)},
		{"This month", today.AddDate(0, 0, 1-today.Day())},
	} {
		from, to := p.from.Format(dayLayout), today.Format(dayLayout)
		period := site.Listing{Path: l.Path, Filter: l.Without("from", "to")}
		period.Filter.Set("from", from)
		list = append(list, component.Tab{
			Label: p.label, Href: period.At("to", to), Current: l.Filter.Get("from") == from && l.Filter.Get("to") == to,
		})
	}
	return list
}
