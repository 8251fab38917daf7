package support

import (
	"strings"
	"testing"

	"github.com/a-h/templ"

	"purser/views/component"
)

// A search that stopped before its end has not found that nothing matches.
func TestUnfinishedSearchesWithoutAMatch(t *testing.T) {
	t.Parallel()
	for list, page := range map[string]func(unfinished bool) templ.Component{
		"events":   func(u bool) templ.Component { return Events(EventList{Active: true, Unfinished: u}) },
		"denials":  func(u bool) templ.Component { return Denials(DenialList{Active: true, Unfinished: u}) },
		"requests": func(u bool) templ.Component { return Requests(RequestList{Filtered: true, Unfinished: u}) },
		"failures": func(u bool) templ.Component {
			return Requests(RequestList{Filtered: true, Failed: true, Unfinished: u})
		},
		"wallets": func(u bool) templ.Component { return Wallets(WalletList{Query: "ann", Unfinished: u}) },
	} {
		t.Run(list, func(t *testing.T) {
			t.Parallel()
			const nothing, further = "Nothing matches the filters", "No matches so far"
			for unfinished, wants := range map[bool][2]string{false: {nothing, further}, true: {further, nothing}} {
				var b strings.Builder
				if err := page(unfinished).Render(t.Context(), &b); err != nil {
					t.Fatal(err)
				}
				if text := b.String(); !strings.Contains(text, wants[0]) || strings.Contains(text, wants[1]) {
					t.Errorf("no %q, or %q, in %s", wants[0], wants[1], text)
				}
			}
		})
	}
}

func TestAFilterThatCannotBeReadIsNoResult(t *testing.T) {
	t.Parallel()
	problems := []component.Problem{{Field: "from", Message: "Enter a date such as 2026-01-31."}}
	for list, page := range map[string]templ.Component{
		"events":   Events(EventList{Active: true, Problems: problems}),
		"deposits": Deposits(DepositList{Active: true, Problems: problems}),
		"denials":  Denials(DenialList{Active: true, Problems: problems}),
	} {
		var b strings.Builder
		if err := page.Render(t.Context(), &b); err != nil {
			t.Fatal(err)
		}
		if text := b.String(); !strings.Contains(text, "Nothing searched") || strings.Contains(text, "Nothing matches") {
			t.Errorf("%s: %s", list, text)
		}
	}
}
