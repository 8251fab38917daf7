package docs

import (
	"strings"
	"testing"
)

func readIndex(t *testing.T) *Index {
	t.Helper()
	index, err := NewIndex(readOurs(t))
	if err != nil {
		t.Fatal(err)
	}
	return index
}

func TestSearch(t *testing.T) {
	t.Parallel()
	index := readIndex(t)

	for query, want := range map[string]string{
		"insufficient_balance":   "/docs/errors/insufficient_balance",
		"Getting started":        "/docs/start",
		"retry same id":          "/docs/usage#retry-with-the-same-id",
		"GET wallets journal":    "/docs/reference/wallets#",
		"idempotency-key":        "/docs/",
		"amountNanocredits":      "/docs/",
		"PURSER_SECRET_KEY":      "/docs/",
		"refunds and DEBTS":      "/docs/payments#top-ups-refunds-and-debt",
		"  sandbox   clock  ":    "/docs/",
		"changelog":              "/docs/changelog",
		"nightly reconciliation": "/docs/reading#nightly-reconciliation",
	} {
		results := index.Search(query)
		if len(results) == 0 || len(results) > MaxResults || !strings.HasPrefix(results[0].Href, want) {
			t.Errorf("%q finds %+v", query, results)
		}
	}

	t.Run("finds every section, operation and code by its own title", func(t *testing.T) {
		for _, e := range index.entries {
			if title := e.page + " " + e.title; !found(index.Search(title), e.href) && len(searchTerms(title)) < maxTerms {
				t.Errorf("%q does not find %s", title, e.href)
			}
		}
	})

	t.Run("finds nothing for nothing, and for what is not there", func(t *testing.T) {
		for _, query := range []string{"", "  ", "***", "__", "zzyzx", "refund zzyzx", "\xff\xfe", strings.Repeat("zq", 100_000)} {
			if results := index.Search(query); len(results) != 0 {
				t.Errorf("%.20q finds %d", query, len(results))
			}
		}
	})

	t.Run("needs the beginning of a word", func(t *testing.T) {
		one := &Index{}
		one.add(entry{href: "/x", page: "Page", text: "Credits are refunded."})
		if len(one.Search("redit")) != 0 || len(one.Search("refund")) != 1 || len(one.Search("credits")) != 1 || len(one.Search("credit")) != 1 {
			t.Error("parts of words match, or words do not")
		}
	})

	t.Run("marks the terms and loses no text", func(t *testing.T) {
		one := &Index{}
		one.add(entry{href: "/x", page: "Page", text: strings.Repeat("filler ", 40) + "a Refund of refunds <b> " + strings.Repeat("more ", 60)})
		excerpt := one.Search("refunds")[0].Excerpt
		var marked []string
		var whole strings.Builder
		for _, fragment := range excerpt {
			whole.WriteString(fragment.Text)
			if fragment.Match {
				marked = append(marked, fragment.Text)
			}
		}
		if strings.Join(marked, "|") != "Refund|refunds" || !strings.Contains(whole.String(), "a Refund of refunds <b> more") {
			t.Errorf("%q in %q", marked, whole.String())
		}
	})
}

func found(results []Result, href string) bool {
	for _, result := range results {
		if result.Href == href {
			return true
		}
	}
	return false
}

func FuzzSearch(f *testing.F) {
	f.Add("refund", "A Refund of ſ credits", "Title")
	f.Add("İ", "İİİ refund", "İ")
	f.Fuzz(func(_ *testing.T, query, text, title string) {
		index := &Index{}
		index.add(entry{href: "/x", page: "Page", title: title, text: text})
		index.Search(query)
	})
}
