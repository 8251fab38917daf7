package web

import (
	"crypto/rand"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"purser/fault"
	"purser/ids"
	"purser/keys"
	"purser/metering"
	"purser/store"
	"purser/store/payments"
	"purser/store/queue"
	"purser/store/reports"
	"purser/store/storetest"
	"purser/tenancy"
	"purser/web/site"
)

// hostileIdentity is an identity that would be markup, a formula and a path.
const hostileIdentity = `=<script>alert(1)</script>/../"'&`

// supportHarness is a harness whose application has something for support to look at.
type supportHarness struct {
	*harness
	tenant store.App
	usage  *store.Engine
	key    keys.APIKey
}

func newSupportHarness(t *testing.T) *supportHarness {
	t.Helper()
	storetest.AvoidEndOf(t, 24*time.Hour) // what is counted by day or month is of one
	db := storetest.Open(t)
	usage, err := db.OpenEngine(t.Context(), store.EngineOptions{})
	noError(t, err)
	t.Cleanup(usage.Close)
	d := &supportHarness{harness: newHarnessOn(t, Options{Options: site.Options{Store: db}, Usage: usage}), usage: usage}
	d.tenant = db.App(d.app.Scope())
	key, _, err := keys.New(keys.Spec{ID: ids.New(), App: d.app, Name: "Server", Preset: keys.Setup}, tenancy.AllPermissions(), d.site.Now(), rand.Reader)
	noError(t, err)
	noError(t, d.tenant.CreateKey(t.Context(), key))
	d.key = key
	noError(t, d.tenant.CreateCredit(t.Context(), metering.Credit{ID: ids.New(), Key: "tokens", Name: "Tokens", Unit: "token", Revision: 1, CreatedAt: d.site.Now()}))
	d.newFeature(t, "messages", metering.Fixed, metering.DeduplicateNone)
	d.newFeature(t, "quoted", metering.Callback, metering.DeduplicateNone)
	d.newFeature(t, "daily", metering.Fixed, metering.DeduplicateDay)
	return d
}

// Payments is what is sold and paid in the application.
func (d *supportHarness) Payments() payments.App { return d.db.Payments(d.app.Scope()) }

// Accounts are the application's accounts at the payment provider.
func (d *supportHarness) Accounts() payments.Accounts { return d.db.PaymentAccounts(d.app.Scope()) }

// Queue is what the application does later.
func (d *supportHarness) Queue() queue.App { return d.db.Queue(d.app.Scope()) }

func (d *supportHarness) newFeature(t *testing.T, key string, mode metering.PricingMode, deduplication metering.Deduplication) metering.Feature {
	t.Helper()
	feature, err := d.tenant.CreateFeature(t.Context(), metering.Feature{
		ID: ids.New(), Key: key, Name: key, Unit: "message", CreditKey: "tokens", Cost: 1_500_000_000, QuantityPerUnit: 1,
		PricingMode: mode, Deduplication: deduplication, Revision: 1, CreatedAt: d.site.Now(),
	})
	noError(t, err)
	return feature
}

func (d *supportHarness) deposit(t *testing.T, identity string, credits metering.Amount) store.Deposit {
	t.Helper()
	key := ids.New().String()
	made, _, err := d.tenant.Deposit(t.Context(), store.Deposit{
		ID: ids.New(), Identity: identity, CreditKey: "tokens", Amount: credits * metering.PerCredit, IdempotencyKey: &key, CreatedAt: d.site.Now(),
	})
	noError(t, err)
	return made
}

func (d *supportHarness) use(identity, feature string, quantity int64) store.Usage {
	return store.Usage{
		Scope: d.app.Scope(), KeyID: d.key.ID, Identity: identity, FeatureKey: feature,
		Usage: metering.Usage{TransactionID: ids.New(), EventID: ids.New().String(), Quantity: quantity},
	}
}

func (d *supportHarness) track(t *testing.T, use store.Usage) metering.Decision {
	t.Helper()
	decision, err := d.usage.Track(use)
	noError(t, err)
	return decision
}

func (d *supportHarness) walletPath(t *testing.T, identity string, parts ...string) string {
	t.Helper()
	w, err := d.tenant.Wallet(t.Context(), identity)
	noError(t, err)
	return d.appPath(append([]string{"wallets", w.ID.Format(ids.Wallet)}, parts...)...)
}

var tag = regexp.MustCompile(`<[^>]*>`)

// textOf is what a page says, with its tags and its line breaks taken out.
func textOf(body string) string {
	return strings.Join(strings.Fields(html.UnescapeString(tag.ReplaceAllString(body, " "))), " ")
}

func says(t *testing.T, page seen, status int, words ...string) {
	t.Helper()
	text := textOf(page.body)
	if page.status != status {
		t.Errorf("status %d, not %d", page.status, status)
	}
	for _, want := range words {
		if !strings.Contains(text, want) {
			t.Errorf("it does not say %q:\n%s", want, text)
		}
	}
}

func TestWalletPages(t *testing.T) {
	t.Parallel()
	d := newSupportHarness(t)
	support := d.join(t, tenancy.Support)
	d.deposit(t, hostileIdentity, 10)
	charged := d.track(t, d.use(hostileIdentity, "messages", 2))
	noError(t, charged.Err())

	t.Run("a hostile identity is found by its beginning, and is text", func(t *testing.T) {
		list := support.get(t, d.appPath("wallets")+"?"+url.Values{"q": {hostileIdentity[:9]}}.Encode())
		says(t, list, http.StatusOK, "7 tokens")
		if strings.Contains(list.body, "<script>alert") || !strings.Contains(list.body, "&lt;script&gt;alert") {
			t.Error("the identity is markup")
		}
		if !strings.Contains(list.body, d.walletPath(t, hostileIdentity)) {
			t.Error("it does not lead to the wallet")
		}
	})

	t.Run("the journal proves its own sum", func(t *testing.T) {
		journal := support.get(t, d.walletPath(t, hostileIdentity))
		says(t, journal, http.StatusOK, "#2", "messages × 2", "−3 tokens", "+10 tokens", "7 tokens", "Matches", "Matches the current balance")
		if strings.Contains(journal.body, "<script>alert") {
			t.Error("the identity is markup")
		}
	})

	t.Run("each tab has its part", func(t *testing.T) {
		says(t, support.get(t, d.walletPath(t, hostileIdentity, "usage")), http.StatusOK, charged.Event.EventID[:20], "messages", "3 tokens")
		says(t, support.get(t, d.walletPath(t, hostileIdentity, "deposits")), http.StatusOK, "Deposit", "+10 tokens")
		says(t, support.get(t, d.walletPath(t, hostileIdentity, "subscription")), http.StatusOK, "No subscriptions yet")
	})

	t.Run("the plan's allowance shows how much of it is used", func(t *testing.T) {
		d.deposit(t, "subscriber", 10)
		feature, err := d.tenant.Feature(t.Context(), "messages")
		noError(t, err)
		storetest.PutSubscription(t, d.url, d.app.Scope(), "subscriber", metering.Subscription{
			ID: ids.New(), Status: metering.StatusActive, Period: metering.MonthOf(d.site.Now()),
			Terms: metering.Terms{Limits: []metering.Limit{{FeatureID: feature.ID, FeatureKey: "messages", Limit: 5, Period: metering.LimitMonth, Overage: metering.OverageBlock}}},
		})
		used := d.track(t, d.use("subscriber", "messages", 3))
		noError(t, used.Err())
		says(t, support.get(t, d.walletPath(t, "subscriber")), http.StatusOK, "3 of 5 used", "Usage past the allowance is declined", "Renews on", "10 tokens")
		custom := d.join(t, tenancy.Custom, tenancy.WalletsRead)
		says(t, custom.get(t, d.walletPath(t, "subscriber")), http.StatusOK, "Your role can't view allowances.")
	})

	t.Run("allowances of features priced per event are shown, up to twelve", func(t *testing.T) {
		d.deposit(t, "quoting", 10)
		subscription := metering.Subscription{ID: ids.New(), Status: metering.StatusActive, Period: metering.MonthOf(d.site.Now())}
		for n := range 13 {
			f := d.newFeature(t, fmt.Sprintf("quoted-%02d", n), metering.Callback, metering.DeduplicateNone)
			subscription.Terms.Limits = append(subscription.Terms.Limits, metering.Limit{FeatureID: f.ID, FeatureKey: f.Key, Limit: 5, Period: metering.LimitMonth, Overage: metering.OverageBlock})
		}
		storetest.PutSubscription(t, d.url, d.app.Scope(), "quoting", subscription)
		use := d.use("quoting", "quoted-00", 2)
		use.Amount = new(metering.Amount)
		used := d.track(t, use)
		noError(t, used.Err())
		page := support.get(t, d.walletPath(t, "quoting"))
		says(t, page, http.StatusOK, "2 of 5 used", "quoted-11", "Only the first 12 are shown.")
		if strings.Contains(page.body, "quoted-12") {
			t.Error("there is a thirteenth")
		}
	})

	t.Run("a wallet of another application is not there", func(t *testing.T) {
		other := newSupportHarness(t)
		other.deposit(t, "theirs", 1)
		w, err := other.tenant.Wallet(t.Context(), "theirs")
		noError(t, err)
		if page := support.get(t, d.appPath("wallets", w.ID.Format(ids.Wallet))); page.status != http.StatusNotFound {
			t.Errorf("status %d", page.status)
		}
		for _, id := range []string{"wal_x", "nonsense", ids.New().Format(ids.Deposit)} {
			if page := support.get(t, d.appPath("wallets", id)); page.status != http.StatusNotFound {
				t.Errorf("%s: status %d", id, page.status)
			}
		}
	})

	t.Run("filters find debts and nothing else", func(t *testing.T) {
		says(t, support.get(t, d.appPath("wallets")+"?show=debt"), http.StatusOK, "No matching wallets")
		says(t, support.get(t, d.appPath("wallets")+"?show=hold"), http.StatusOK, "No matching wallets")
		d.deposit(t, "subscriber-2", 1)
		for n := range site.PageSize + 1 { // more than a search reads at once
			d.deposit(t, fmt.Sprint("sub", n), 1)
		}
		storetest.PutSubscription(t, d.url, d.app.Scope(), "subscriber-2", metering.Subscription{ID: ids.New(), Status: metering.StatusPastDue, Period: metering.MonthOf(d.site.Now())})
		for query, want := range map[string]string{"?q=subscriber": "subscriber subscriber-2", "?q=subscriber&show=hold": "subscriber-2", "?q=sub&show=hold": "subscriber-2", "?q=stranger&show=hold": "", "?q=subscriber&show=debt": ""} {
			page := support.get(t, d.appPath("wallets")+query)
			var found []string
			for _, identity := range []string{"subscriber", "subscriber-2"} {
				if strings.Contains(page.body, d.walletPath(t, identity)+`"`) {
					found = append(found, identity)
				}
			}
			if strings.Join(found, " ") != want {
				t.Errorf("%s finds %v", query, found)
			}
		}
	})
}

func TestTransactionPage(t *testing.T) {
	t.Parallel()
	d := newSupportHarness(t)
	support := d.join(t, tenancy.Support)
	deposit := d.deposit(t, "ann", 100)
	charged := d.track(t, d.use("ann", "messages", 2))
	first := d.track(t, d.use("ann", "daily", 1))
	again := d.track(t, d.use("ann", "daily", 1))

	t.Run("shows the formula with its numbers, the key and the request", func(t *testing.T) {
		id := charged.Event.TransactionID
		page := support.get(t, d.appPath("transactions", id.Format(ids.Transaction)))
		says(t, page, http.StatusOK, "2 messages × 1.5 tokens per message = 3 tokens", "1,500,000,000 cost × 2 billable × 10,000 basis points", "= 3,000,000,000 nanocredits", "list price",
			"Server", id.Format(ids.Request), "Only if the event was sent on its own", "100 tokens", "97 tokens")
	})
	t.Run("does not call it a charge when the allowance covers it", func(t *testing.T) {
		d.deposit(t, "covered", 10)
		feature := d.newFeature(t, "included", metering.Fixed, metering.DeduplicateNone)
		storetest.PutSubscription(t, d.url, d.app.Scope(), "covered", metering.Subscription{
			ID: ids.New(), Status: metering.StatusActive, Period: metering.MonthOf(d.site.Now()),
			Terms: metering.Terms{Limits: []metering.Limit{{FeatureID: feature.ID, FeatureKey: "included", Limit: 5, Period: metering.LimitMonth, Overage: metering.OverageBlock}}},
		})
		covered := d.track(t, d.use("covered", "included", 5))
		page := support.get(t, d.appPath("transactions", covered.Event.TransactionID.Format(ids.Transaction)))
		says(t, page, http.StatusOK, "Not charged: 5 ", "Not charged: fully covered by the plan's allowance.", "5 covered, 0 billable")
		if strings.Contains(page.body, "Charge: ") {
			t.Error("the title calls it a charge")
		}
		journal := support.get(t, d.walletPath(t, "covered"))
		says(t, journal, http.StatusOK, "Not charged")
		if strings.Contains(journal.body, ">Charge<") {
			t.Error("the journal calls it a charge")
		}
	})
	t.Run("leads from a deduplicated use to the first", func(t *testing.T) {
		page := support.get(t, d.appPath("transactions", again.Event.TransactionID.Format(ids.Transaction)))
		says(t, page, http.StatusOK, "Not charged", first.Event.TransactionID.Format(ids.Transaction))
	})
	t.Run("explains a deposit", func(t *testing.T) {
		page := support.get(t, d.appPath("transactions", deposit.ID.Format(ids.Transaction)))
		says(t, page, http.StatusOK, "Deposit: 100 tokens", "+100 tokens", *deposit.IdempotencyKey)
	})
	t.Run("does not exist for an unknown id", func(t *testing.T) {
		if page := support.get(t, d.appPath("transactions", ids.New().Format(ids.Transaction))); page.status != http.StatusNotFound {
			t.Errorf("status %d", page.status)
		}
	})
}

func TestCheckPage(t *testing.T) {
	t.Parallel()
	d := newSupportHarness(t)
	support := d.join(t, tenancy.Support)
	limited := d.newFeature(t, "limited", metering.Fixed, metering.DeduplicateNone)
	billing := d.newFeature(t, "billing", metering.Fixed, metering.DeduplicateBilling)
	_ = billing
	d.deposit(t, "blocked", 1)
	d.deposit(t, "resting", 1)
	for identity, status := range map[string]metering.SubscriptionStatus{"blocked": metering.StatusActive, "resting": metering.StatusPastDue} {
		storetest.PutSubscription(t, d.url, d.app.Scope(), identity, metering.Subscription{
			ID: ids.New(), Status: status, Period: metering.MonthOf(d.site.Now()),
			Terms: metering.Terms{Limits: []metering.Limit{{
				FeatureID: limited.ID, FeatureKey: "limited", Limit: 5, Period: metering.LimitMonth, Overage: metering.OverageBlock,
			}}},
		})
	}
	ask := func(t *testing.T, fields url.Values) seen {
		t.Helper()
		return support.get(t, d.appPath("check")+"?"+fields.Encode())
	}

	for name, c := range map[string]struct {
		identity, feature string
		quantity          int64
		code              fault.Code
		words             []string
	}{
		"a balance that does not cover it": {"blocked", "messages", 4, fault.InsufficientBalance, []string{"Needs 6 tokens, has 1 token.", "Deposit at least 5 tokens"}},
		"an identity without a wallet":     {"nobody", "messages", 1, fault.InsufficientBalance, []string{"No wallet yet", "Deposit at least 1.5 tokens"}},
		"an allowance that is used up":     {"blocked", "limited", 6, fault.FeatureLimitExceeded, []string{"Needs 6, 5 left of 5"}},
		"a failed payment":                 {"resting", "limited", 1, fault.SubscriptionInactive, []string{"Access resumes when the overdue invoice is paid, or when the paused subscription is resumed."}},
		"a missing amount":                 {"blocked", "quoted", 1, fault.AmountRequired, []string{"Send amountNanocredits"}},
		"a missing billing period":         {"blocked", "billing", 1, "", nil},
		"nothing":                          {"blocked", "limited", 5, "", []string{"Allowed", "Cost: 0 tokens"}},
	} {
		t.Run("explains "+name+" as the API does", func(t *testing.T) {
			decision, err := d.usage.Check(d.use(c.identity, c.feature, c.quantity))
			noError(t, err)
			page := ask(t, url.Values{"identity": {c.identity}, "feature": {c.feature}, "quantity": {fmt.Sprint(c.quantity)}})
			says(t, page, http.StatusOK, c.words...)
			if c.code != "" && decision.Code != c.code {
				t.Errorf("the API says %q", decision.Code)
			}
			if decision.Code != "" {
				says(t, page, http.StatusOK, "Denied", "API response: "+string(decision.Code))
			}
		})
	}

	t.Run("takes what the API would not as a mistake in the form", func(t *testing.T) {
		for field, value := range map[string]string{"quantity": "0", "amount": "1e9", "feature": "no-such", "identity": ""} {
			fields := url.Values{"identity": {"ann"}, "feature": {"messages"}, "quantity": {"1"}}
			fields.Set(field, value)
			page := ask(t, fields)
			if page.status != http.StatusUnprocessableEntity || !strings.Contains(page.body, `href="#field-`+field) {
				t.Errorf("%s %q: status %d", field, value, page.status)
			}
		}
	})

	t.Run("asks nothing before it is asked", func(t *testing.T) {
		if page := support.get(t, d.appPath("check")); page.status != http.StatusOK || strings.Contains(page.body, `id="answer"`) {
			t.Errorf("status %d", page.status)
		}
	})
}

func TestSupportLists(t *testing.T) {
	t.Parallel()
	d := newSupportHarness(t)
	support := d.join(t, tenancy.Support)
	d.deposit(t, hostileIdentity, 10)
	used := d.use(hostileIdentity, "messages", 1)
	d.track(t, used)
	d.track(t, d.use(hostileIdentity, "messages", 1_000))
	hostile := "identity=" + url.QueryEscape(strings.ToUpper(hostileIdentity))
	today := time.UnixMilli(d.site.Now()).UTC().Format(time.DateOnly)

	t.Run("events", func(t *testing.T) {
		says(t, support.get(t, d.appPath("events")), http.StatusOK, "messages", "1.5 tokens")
		says(t, support.get(t, d.appPath("events")+"?feature=daily"), http.StatusOK, "No results")
		says(t, support.get(t, d.appPath("events")+"?event=none"), http.StatusOK, "No results")
		says(t, support.get(t, d.appPath("events")+"?"+hostile), http.StatusOK, "messages", "1.5 tokens")
		says(t, support.get(t, d.appPath("events")+"?identity=stranger"), http.StatusOK, "No results")
		event := "?event=" + url.QueryEscape(used.EventID)
		says(t, support.get(t, d.appPath("events")+event+"&"+hostile), http.StatusOK, "1.5 tokens")
		says(t, support.get(t, d.appPath("events")+event+"&identity=stranger"), http.StatusOK, "No results")
		if page := support.get(t, d.appPath("events")+"?before=nonsense"); page.status != http.StatusNotFound {
			t.Errorf("a cursor that is none: %d", page.status)
		}
	})
	t.Run("deposits", func(t *testing.T) {
		says(t, support.get(t, d.appPath("deposits")+"?kind=deposit&credit=tokens&from="+today+"&to="+today), http.StatusOK, "+10 tokens")
		says(t, support.get(t, d.appPath("deposits")+"?kind=grant"), http.StatusOK, "No results")
		says(t, support.get(t, d.appPath("deposits")+"?"+hostile), http.StatusOK, "+10 tokens")
		says(t, support.get(t, d.appPath("deposits")+"?identity=stranger"), http.StatusOK, "No results")
		says(t, support.get(t, d.appPath("deposits")+"?from=2001-01-01&to=2001-01-02"), http.StatusOK, "No results")
		says(t, support.get(t, d.appPath("deposits")+"?from=soon"), http.StatusUnprocessableEntity, "Enter a date")
	})
	t.Run("deposits as a file, in which nothing is a formula", func(t *testing.T) {
		file := support.get(t, d.appPath("deposits.csv")+"?kind=deposit")
		if file.status != http.StatusOK || !strings.HasPrefix(file.header.Get("Content-Type"), "text/csv") {
			t.Fatalf("status %d, %q", file.status, file.header.Get("Content-Type"))
		}
		if !strings.Contains(file.body, `"'=<script>`) || !strings.Contains(file.body, ",10,10000000000,") {
			t.Errorf("got %s", file.body)
		}
	})
	t.Run("every list as a file", func(t *testing.T) {
		wallet := d.walletPath(t, hostileIdentity)
		month := time.UnixMilli(d.site.Now()).UTC().Format("2006-01")
		for _, wrong := range []string{"2026-13", "2026", "x"} {
			if file := support.get(t, wallet+"/journal.csv?month="+wrong); file.status != http.StatusBadRequest && file.status != http.StatusUnprocessableEntity {
				t.Errorf("the month %s: status %d", wrong, file.status)
			}
		}
		if page := support.get(t, wallet); !strings.Contains(page.body, `<option value="`+month+`">`) {
			t.Errorf("the journal offers no statement of %s", month)
		}
		for path, want := range map[string][]string{
			d.appPath("events.csv"):                 {"transaction,event,", `"'=<script>`, ",messages,1,,false,tokens,", ",1.5,1500000000,"},
			d.appPath("events.csv") + "?event=none": {"transaction,event,"},
			d.appPath("subscriptions.csv"):          {"id,identity,plan,"},
			d.appPath("checkouts.csv"):              {"id,kind,identity,"},
			wallet + "/journal.csv?month=" + month:  {"number,", ",closing balance,,tokens,,8500000000,0,", ",charge,", ",-1500000000,8500000000,"},
			wallet + "/journal.csv?month=2001-01":   {"number,"},
			wallet + "/journal.csv":                 {"number,transaction,", ",charge,", ",-1500000000,8500000000,", ",10000000000,10000000000,"},
		} {
			file := support.get(t, path)
			if file.status != http.StatusOK || !strings.HasPrefix(file.header.Get("Content-Type"), "text/csv") {
				t.Errorf("%s: status %d, %q", path, file.status, file.header.Get("Content-Type"))
			}
			for _, text := range want {
				if !strings.Contains(file.body, text) {
					t.Errorf("%s lacks %q:\n%s", path, text, file.body)
				}
			}
			if strings.Contains(path, "none") && strings.Count(file.body, "\n") != 1 {
				t.Errorf("the filter is ignored:\n%s", file.body)
			}
		}
	})
	t.Run("subscriptions and checkouts, before there are any", func(t *testing.T) {
		says(t, support.get(t, d.appPath("subscriptions")+"?status=hold"), http.StatusOK, "No results")
		says(t, support.get(t, d.appPath("subscriptions")+"?status=active"), http.StatusOK, "No results")
		says(t, support.get(t, d.appPath("subscriptions")+"?"+hostile), http.StatusOK, "No results")
		says(t, support.get(t, d.appPath("checkouts")+"?kind=topup&identity=ann"), http.StatusOK, "No results")
	})
	t.Run("requests, for developers and for support", func(t *testing.T) {
		d.db.Stats().RecordRequest(d.app.Scope(), reports.Request{
			ID: ids.New(), At: d.site.Now(), Method: "POST", Route: "/v1/events", Status: 409, Code: fault.InsufficientBalance, TookMicros: 2_345, Authenticated: true, KeyID: d.key.ID,
		})
		developer := d.join(t, tenancy.Developer)
		says(t, developer.get(t, d.appPath("requests")+"?show=failed"), http.StatusOK,
			"POST /v1/events", "409", "insufficient_balance", "2.3", "Server", d.key.Masked(), "1 failed")
		says(t, support.get(t, d.appPath("requests")), http.StatusOK, "POST /v1/events", "insufficient_balance")
	})
	t.Run("the overview counts all of it", func(t *testing.T) {
		says(t, support.get(t, d.appPath()), http.StatusOK, "Charged 1 .5 tokens" /* decimals are set apart */, "Denied 1", "Active wallets 1", "Deposits 10 tokens", "insufficient_balance", "None in the previous 30 days")
		says(t, support.get(t, d.appPath()+"?days=1"), http.StatusOK, "None all day yesterday")
	})
	t.Run("the overview leads a newcomer", func(t *testing.T) {
		r := newHarness(t)
		says(t, r.join(t, tenancy.Owner).get(t, r.appPath()), http.StatusOK, "Create a credit", "Track your first event", "No features used in this period")
	})
}
