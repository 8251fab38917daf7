package org

import (
	"strings"
	"testing"
)

func shown(t *testing.T, changes ...FieldChange) string {
	t.Helper()
	var b strings.Builder
	if err := Changes(changes).Render(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestFactsAreShownForWhatTheyAre(t *testing.T) {
	t.Parallel()
	for claim, c := range map[string]struct {
		name, text string
		want       []string
	}{
		"a moment as a time":           {"revokedAt", "1794648660123", []string{"revoked at", ">14 Nov 2026, 09:31 UTC<", `title="2026-11-14T09:31:00.123Z"`}},
		"nanocredits as credits":       {"costNanocredits", "1500000000", []string{">cost<", ">1.5<", `title="1,500,000,000 nanocredits"`}},
		"a balance as credits":         {"balance", "1250.5", []string{">1,250.5<", `title="1,250,500,000,000 nanocredits"`}},
		"what was taken with its sign": {"change", "-5", []string{"−5", `data-direction="out"`}},
		"what was given with its sign": {"change", "5", []string{"+5", `data-direction="in"`}},
		"an id as code":                {"replacedBy", "key_01m7ewzp3pfr4976jxkvfa63gm", []string{"replaced by", `<code class="code">key_01m7ewzp3pfr4976jxkvfa63gm</code>`}},
		"yes and no in words":          {"topupsEnabled", "true", []string{"topups enabled", "<bdi>yes</bdi>"}},
		"a number with its thousands":  {"quantityPerUnit", "1000000", []string{"quantity per unit", "<bdi>1,000,000</bdi>"}},
		"each grant in credits":        {"creditGrants", "tokens 5000000000; coins 1", []string{`<code class="code">tokens</code>`, ">5<", `<code class="code">coins</code>`, ">0.000000001<"}},
		"each limit in words":          {"featureLimits", "chat 1000 month block; seats 3 billing credits", []string{"1,000 per month, then declined", "3 per billing period, then charged"}},
		"each multiplier in per cent":  {"featureMultipliers", "chat 5000", []string{`<code class="code">chat</code>`, "50% of list price"}},
		"an anchor as a time":          {"anchor", "1794648660123", []string{">14 Nov 2026, 09:31 UTC<"}},
		"each threshold in credits":    {"thresholdsNanocredits", "20000000000; 5", []string{">thresholds<", "<li>", ">20<", ">0.000000005<"}},
		"a name as it stands":          {"deployment URL", "https://example.com/At", []string{">deployment URL<", "<bdi>https://example.com/At</bdi>"}},
		"hostile words as words":       {"name", "<b>1794648660123</b>", []string{"<bdi>&lt;b&gt;1794648660123&lt;/b&gt;</bdi>"}},

		"a moment that is none as it stands": {"revokedAt", "<soon>", []string{"<bdi>&lt;soon&gt;</bdi>"}},
		"an amount that is none":             {"costNanocredits", "much", []string{"<bdi>much</bdi>"}},
		"a list with a stranger in it":       {"creditGrants", "tokens 5; coins", []string{"<bdi>tokens 5; coins</bdi>"}},
		"a limit of another time":            {"featureLimits", "chat 5 year block", []string{"<bdi>chat 5 year block</bdi>"}},
	} {
		t.Run("shows "+claim, func(t *testing.T) {
			t.Parallel()
			html := shown(t, FieldChange{Name: c.name, After: c.text})
			for _, want := range c.want {
				if !strings.Contains(html, want) {
					t.Errorf("no %q in %s", want, html)
				}
			}
			if strings.Contains(html, "<del>") {
				t.Errorf("something was before: %s", html)
			}
		})
	}

	t.Run("says what became of what", func(t *testing.T) {
		t.Parallel()
		html := shown(t, FieldChange{Name: "costNanocredits", Before: "2000000000", After: "3000000000"})
		was, now := strings.Index(html, ">2<"), strings.Index(html, ">3<")
		if !strings.Contains(html, "<del>") || !strings.Contains(html, "<ins>") || !strings.Contains(html, "became") || was < 0 || now < was {
			t.Error(html)
		}
	})
}
