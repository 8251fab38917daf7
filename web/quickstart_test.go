package web

import (
	"context"
	"crypto/rand"
	"html"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"purser/docs"
	"purser/fault"
	"purser/ids"
	"purser/keys"
	"purser/metering"
	"purser/store"
	"purser/store/reports"
	"purser/tenancy"
)

// ticks counts those of the checklist.
func ticks(page seen) int { return strings.Count(page.body, "Done:") }

func TestQuickstart(t *testing.T) {
	t.Parallel()
	r := newDocsHarness(t)
	b := r.join(t, tenancy.Developer)
	app := r.db.App(r.app.Scope())
	path := r.appPath("quickstart")
	look := func(t *testing.T) (seen, string) {
		t.Helper()
		page := b.get(t, path+"?language=curl")
		if page.status != http.StatusOK {
			t.Fatalf("it answers %d", page.status)
		}
		return page, html.UnescapeString(page.body)
	}

	t.Run("begins with nothing done and the commands that do it", func(t *testing.T) {
		page, text := look(t)
		call := docs.Call{Address: "https://purser.example", Identity: "user-42", Credit: "tokens", Feature: "chat"}
		for _, want := range []string{call.DefineCredit(), call.PriceFeature(), call.FundWallet(), "Waiting for your first event…", `hx-trigger="every 3s"`, "read -r PURSER_KEY"} {
			if !strings.Contains(text, want) {
				t.Errorf("there is no %s", want)
			}
		}
		if ticks(page) != 0 || strings.Contains(text, "Failed requests") {
			t.Errorf("%d ticks", ticks(page))
		}
	})

	t.Run("has a snippet in each language, for this server", func(t *testing.T) {
		for _, language := range docs.Languages {
			want, err := language.Snippet(docs.Call{Address: "https://purser.example", Identity: "user-42", Feature: "chat"})
			noError(t, err)
			page := b.get(t, path+"?language="+language.Key)
			if !strings.Contains(html.UnescapeString(page.body), want) {
				t.Errorf("%s is not there", language.Name)
			}
		}
		if page := b.get(t, path+"?language=cobol"); page.status != http.StatusOK {
			t.Errorf("an unknown language answers %d", page.status)
		}
	})

	t.Run("says what went wrong with requests that came", func(t *testing.T) {
		r.db.Stats().RecordRequest(r.app.Scope(), reports.Request{
			ID: ids.New(), At: r.site.Now(), Method: "POST", Route: "/v1/events", Status: 404, Code: fault.FeatureNotFound, Authenticated: true, KeyID: ids.New(),
		})
		_, text := look(t)
		for _, want := range []string{"Failed requests", "POST /v1/events", `href="/docs/errors/feature_not_found"`, fault.FeatureNotFound.Meaning().Do} {
			if !strings.Contains(text, want) {
				t.Errorf("there is no %s", want)
			}
		}
	})

	t.Run("hides requests from who may not see them", func(t *testing.T) {
		reader := r.join(t, tenancy.Custom, tenancy.WalletsRead)
		if page := reader.get(t, path); page.status != http.StatusOK || strings.Contains(page.body, "Failed requests") {
			t.Errorf("it answers %d", page.status)
		}
	})

	t.Run("ticks what is there, and names it in the commands", func(t *testing.T) {
		noError(t, app.CreateCredit(t.Context(), metering.Credit{ID: ids.New(), Key: "minutes", Name: "Minutes", Unit: "minute", Revision: 1, CreatedAt: r.site.Now()}))
		page, text := look(t)
		if ticks(page) != 1 || strings.Contains(text, `"key": "tokens"`) || !strings.Contains(text, `"creditKey": "minutes"`) {
			t.Errorf("%d ticks", ticks(page))
		}
		_, err := app.CreateFeature(t.Context(), metering.Feature{
			ID: ids.New(), Key: "call", Name: "Call", Unit: "minute", CreditKey: "minutes", Cost: 7, QuantityPerUnit: 1,
			PricingMode: metering.Fixed, Deduplication: metering.DeduplicateNone, Revision: 1, CreatedAt: r.site.Now(),
		})
		noError(t, err)
		page, text = look(t)
		if ticks(page) != 2 || strings.Contains(text, `"feature": "chat"`) || !strings.Contains(text, `"id": "first-event-call"`) || !strings.Contains(text, `"feature": "call"`) {
			t.Errorf("%d ticks", ticks(page))
		}
	})

	t.Run("stops waiting when the first event has come", func(t *testing.T) {
		r.useOnce(t, "call", "minutes")
		page, text := look(t)
		if ticks(page) != 5 || strings.Contains(text, `hx-trigger="every`) || strings.Contains(text, "Waiting") || strings.Contains(text, "Failed requests") {
			t.Errorf("%d ticks", ticks(page))
		}
		if !strings.Contains(text, `href="/docs/payments"`) {
			t.Error("nothing is said of payments")
		}
		if !strings.Contains(text, "You sent your first event.") || strings.Contains(text, "/v1/features") {
			t.Error("it goes on as if there were none")
		}
		if !strings.Contains(text, "/v1/deposits") {
			t.Error("the shown event can't be paid")
		}
	})
}

func TestQuickstartLeadsToAKeyThatFits(t *testing.T) {
	t.Parallel()
	r := newDocsHarness(t)
	b := r.join(t, tenancy.Admin)
	form := r.appPath("keys", "new") + "?from=quickstart&preset=setup"
	preset := func(key, page string) bool {
		_, rest, found := strings.Cut(page, `value="`+key+`"`)
		return found && strings.HasPrefix(rest, " checked")
	}

	t.Run("the link asks for the preset that may do every step", func(t *testing.T) {
		if !strings.Contains(html.UnescapeString(b.get(t, r.appPath("quickstart")).body), `href="`+form+`"`) {
			t.Error("it is not there")
		}
		page := b.get(t, form).body
		if !preset("setup", page) || !strings.Contains(page, `name="from" value="quickstart"`) {
			t.Error("the form does not offer it")
		}
	})
	t.Run("the form alone offers the narrow one, and leads back to the keys", func(t *testing.T) {
		page := b.get(t, r.appPath("keys", "new")).body
		if !preset("ingestion", page) || strings.Contains(page, `name="from"`) {
			t.Error("it offers more")
		}
	})
	t.Run("a preset that the member cannot give is not offered", func(t *testing.T) {
		maker := r.join(t, tenancy.Custom, tenancy.WalletsRead, tenancy.KeysRead, tenancy.KeysWrite, tenancy.EventsIngest)
		if page := maker.get(t, form).body; preset("setup", page) || !preset("ingestion", page) {
			t.Error("it is")
		}
	})
	t.Run("a key that only ingests is no tick", func(t *testing.T) {
		made := b.post(t, r.appPath("keys", "new"), newKeyFields("ingestion", ""))
		if made.status != http.StatusOK || strings.Contains(made.body, r.appPath("quickstart")+`">Done`) || ticks(b.get(t, r.appPath("quickstart"))) != 0 {
			t.Errorf("status %d", made.status)
		}
	})
	t.Run("a stored key leads back, and is ticked", func(t *testing.T) {
		made := b.post(t, r.appPath("keys", "new"), newKeyFields("setup", "quickstart"))
		if made.status != http.StatusOK || !strings.Contains(made.body, `href="`+r.appPath("quickstart")+`">Done`) {
			t.Errorf("status %d", made.status)
		}
		if ticks(b.get(t, r.appPath("quickstart"))) != 1 {
			t.Error("it is not ticked")
		}
	})
	t.Run("no other word leads anywhere", func(t *testing.T) {
		made := b.post(t, r.appPath("keys", "new"), newKeyFields("setup", "https://evil.example"))
		if made.status != http.StatusOK || strings.Contains(made.body, "evil.example") {
			t.Errorf("status %d", made.status)
		}
	})
	t.Run("a new application lands on it", func(t *testing.T) {
		got := b.post(t, r.orgPath("a", "new"), url.Values{"name": {"Second"}, "mode": {"development"}})
		if got.location != r.orgPath("a", "second", "quickstart") {
			t.Errorf("it lands on %s", got.location)
		}
	})
}

func newKeyFields(preset, from string) url.Values {
	return url.Values{"id": {ids.New().Format(ids.APIKey)}, "name": {"Server"}, "preset": {preset}, "lifetime": {"none"}, "from": {from}}
}

// useOnce makes a key, a funded wallet and an accepted use.
func (r *harness) useOnce(t *testing.T, feature, credit string) {
	t.Helper()
	app := r.db.App(r.app.Scope())
	key, _, err := keys.New(keys.Spec{ID: ids.New(), App: r.app, Name: "Server", Preset: keys.Ingestion}, tenancy.AllPermissions(), r.site.Now(), rand.Reader)
	noError(t, err)
	noError(t, app.CreateKey(t.Context(), key))
	_, _, err = app.Deposit(t.Context(), store.Deposit{
		ID: ids.New(), Identity: "ann", CreditKey: credit, Amount: 100, IdempotencyKey: new("first"), CreatedAt: r.site.Now(),
	})
	noError(t, err)
	usage, err := r.db.OpenEngine(context.Background(), store.EngineOptions{})
	noError(t, err)
	t.Cleanup(usage.Close)
	decision, err := usage.Track(store.Usage{
		Scope: r.app.Scope(), KeyID: key.ID, Identity: "ann", FeatureKey: feature,
		Usage: metering.Usage{EventID: "e1", TransactionID: ids.New(), Quantity: 1},
	})
	noError(t, err)
	noError(t, decision.Err())
}
