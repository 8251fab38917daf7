package support

import (
	"strings"
	"testing"

	"github.com/a-h/templ"

	"purser/views/component"
)

func TestDaysWithoutAnything(t *testing.T) {
	t.Parallel()
	zero := component.Series{ID: "chart", Title: "Usage by day", Bars: []component.Bar{{Label: "1 Nov"}, {Label: "2 Nov"}}}
	one := component.Series{ID: "chart", Title: "Usage by day", Bars: []component.Bar{{Label: "1 Nov", Value: 1, Text: "1"}}}
	for claim, c := range map[string]struct {
		overview       Overview
		want, unwanted []string
	}{
		"lead to the first use when there was none": {
			Overview{Uses: zero, Denied: zero, Quickstart: "/quickstart", Events: "/events", Check: "/check"},
			[]string{"No usage yet", `href="/quickstart"`, "No denials", `href="/check"`}, []string{"<svg class=\"chart-plot\"", `href="/events"`},
		},
		"lead to what was before when there was one": {
			Overview{Uses: zero, Denied: zero, Used: true, Quickstart: "/quickstart", Events: "/events"},
			[]string{"No usage in this period", `href="/events"`}, []string{"<svg class=\"chart-plot\"", `href="/quickstart"`},
		},
		"lead nowhere that is not for the person": {
			Overview{Uses: zero, Denied: zero}, []string{"No usage yet", "No denials"}, []string{`class="button"`},
		},
		"have a chart once there is something": {
			Overview{Uses: one, Denied: one, Used: true}, []string{"<svg class=\"chart-plot\""}, []string{"No usage yet", "No denials", "No usage"},
		},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			var b strings.Builder
			for _, part := range []templ.Component{usage(c.overview), denials(c.overview)} {
				if err := part.Render(t.Context(), &b); err != nil {
					t.Fatal(err)
				}
			}
			for _, want := range c.want {
				if !strings.Contains(b.String(), want) {
					t.Errorf("no %q in %s", want, b.String())
				}
			}
			for _, unwanted := range c.unwanted {
				if strings.Contains(b.String(), unwanted) {
					t.Errorf("%q in %s", unwanted, b.String())
				}
			}
		})
	}
}
