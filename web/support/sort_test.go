package support

import (
	"net/url"
	"testing"

	"purser/web/site"
)

func TestAnUnknownOrderIsTheDefault(t *testing.T) {
	t.Parallel()
	for order, want := range map[string]string{"": "", sortOldest: sortOldest, "nonsense": "", "identity": ""} {
		list := site.Listing{Path: "/deposits", Filter: url.Values{"kind": {"grant"}, "sort": {order}}}
		keepOrder(list, sortOldest)
		if got := list.Filter.Get("sort"); got != want || list.Filter.Get("kind") != "grant" {
			t.Errorf("%q is %q, expected %q", order, got, want)
		}
		pages := list.Pages("before", true, "x")
		if pages.Sorted != (want != "") {
			t.Errorf("%q: %+v", order, pages)
		}
		if now := byAge(list).Now; (now == "ascending") != (want == sortOldest) || now == "" {
			t.Errorf("%q is shown as %q", order, now)
		}
	}
}
