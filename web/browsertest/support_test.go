package browsertest

import (
	"strings"
	"testing"

	"purser/billing"
	"purser/metering"
	"purser/tenancy"
	"purser/views/component"
	"purser/views/layout"
	supportpage "purser/views/page/support"
)

// supportPages are the pages for support, with what they show at worst: hostile
// and endless identities, the largest amounts, debts and holds.
func supportPages() map[string]view {
	const app = "/o/acme/a/shop"
	frame := func(current string) layout.Frame {
		return layout.Frame{
			Title: "Support", Person: layout.Person{Name: "Ann Example", Email: "ann@example.com"}, Current: current,
			Org: layout.Place{Name: "Acme", Href: "/o/acme"}, Orgs: []layout.Place{{Name: "Acme", Href: "/o/acme"}},
			App: layout.Application{Place: layout.Place{Name: "Shop", Href: app}}, Apps: []layout.Application{{Place: layout.Place{Name: "Shop", Href: app}}},
			Nav: layout.AppNav(app, tenancy.AllPermissions()),
		}
	}
	hostile, endless := "<img src=x onerror=alert(1)> & \"quotes\" \u202e", strings.Repeat("long-identity.", 14)+"com"
	held := supportpage.SubscriptionRow{
		ID: "sub_01m7ewzp3pfr4976jxkvfa63gm", ProviderID: "sub_1NWg2zEVYOqk", Identity: hostile, WalletHref: app + "/wallets/x", PlanName: "Team & <b>more</b>",
		PlanHref: app + "/plans/team/edit", Status: metering.StatusPastDue, Period: metering.Period{Start: moment, End: moment + 1}, CancelAtPeriodEnd: true,
		Downgrade: true, Pending: true, CreatedAt: moment, EndedAt: moment,
	}
	balances := []metering.Balance{
		{CreditKey: "tokens", Amount: metering.MaxAmount}, {CreditKey: "coins", Debt: 2_500_000_000}, {CreditKey: "minutes"}, {CreditKey: "seats", Amount: 1},
	}
	denied := supportpage.DenialRow{Href: app + "/denials/x", Identity: endless, FeatureKey: "messages", Quantity: metering.MaxQuantity, Unit: "message", Check: true, Reason: "Plan limit reached", Numbers: "Needs 9,007,199,254,740,991, 12 left of 20,000.", At: moment}
	usualDenial := supportpage.DenialRow{Href: app + "/denials/y", Identity: "felix@wingtip.example", WalletHref: app + "/wallets/x", FeatureKey: "image", Quantity: 3, Unit: "image", Reason: "Balance too low", Numbers: "Needs 12 credits, has 4.25 credits.", At: moment}
	price := billing.Price{AmountCents: 999_999_999, Currency: "usd", Interval: billing.Year}
	plan := &supportpage.WalletPlan{
		Price: price, Grants: []billing.Grant{{CreditKey: "tokens", Amount: metering.MaxAmount}}, Suspended: true,
		Allowances: []supportpage.Allowance{
			{FeatureKey: "messages", Allowance: metering.Allowance{Limit: metering.MaxQuantity, Used: metering.MaxQuantity, Period: metering.MonthOf(moment), Overage: metering.OverageBlock}},
			{FeatureKey: "a-feature-with-a-key-of-eighty-characters-a-feature-with-a-key-of-eighty-charact", Allowance: metering.Allowance{Limit: 5, Used: 4, Period: metering.MonthOf(moment), Overage: metering.OverageCredits}},
		},
		Scheduled: &supportpage.PlanChange{PlanName: hostile, At: moment, Price: price},
		Pending:   &supportpage.PendingChange{PlanName: endless, Price: price, ExpiresAt: moment, PaymentURL: "https://pay.example/i/" + strings.Repeat("0123456789abcdef", 16)},
	}
	head := func(tab string) supportpage.WalletHead {
		return supportpage.WalletHead{
			Frame: frame("wallets"), List: app + "/wallets", Path: app + "/wallets/x", Tab: tab, May: tenancy.AllPermissions(), ID: "wal_01m7ewzp3pfr4976jxkvfa63gm", Identity: endless,
			CreatedAt: moment, Balances: balances, BillingPeriod: &metering.BillingPeriod{Interval: metering.Month}, Current: metering.MonthOf(moment), Locked: true,
			Subscription: &held, Plan: plan, Check: app + "/check", Adjust: app + "/wallets/x/adjust",
			Transfer: app + "/wallets/x/transfer", Export: app + "/wallets/x/export.json",
		}
	}
	events := []supportpage.EventRow{
		{Href: app + "/transactions/x", EventID: "0199d1c7-6c1e-7b61-b9ad-6a4fd1f2a001", Identity: hostile, WalletHref: app + "/wallets/x", FeatureKey: "messages", EntityID: "room 7",
			Quantity: metering.MaxQuantity, Unit: "message", Amount: metering.MaxAmount, CreditKey: "tokens", OccurredAt: moment - 5, CreatedAt: moment},
		{Href: app + "/transactions/y", EventID: hostile, Identity: endless, WalletHref: app + "/wallets/x", FeatureKey: "daily", Quantity: 1, Unit: "day", CreditKey: "tokens",
			OccurredAt: moment, CreatedAt: moment, FirstHref: app + "/transactions/x"},
	}
	usual := []supportpage.EventRow{{
		Href: app + "/transactions/x", EventID: "0199d1c7-6c1e-7b61-b9ad-6a4fd1f2a001", Identity: "maximiliane.mustermann@example.com", WalletHref: app + "/wallets/x", FeatureKey: "image.generation",
		EntityID: "room 7", Quantity: 120_400, Unit: "message", Amount: 1_234_567_891_234, CreditKey: "tokens", OccurredAt: moment - 5, CreatedAt: moment,
	}}
	deposits := []supportpage.DepositRow{
		{Href: app + "/transactions/d", ID: "dep_01m7ewzp3pfr4976jxkvfa63gm", Kind: metering.EntryDeposit, Identity: hostile, WalletHref: app + "/wallets/x", Amount: 5, CreditKey: "tokens", IdempotencyKey: endless, CreatedAt: moment},
		{Href: app + "/transactions/e", ID: "dep_01m7ewzp3pfr4976jxkvfa63gn", Kind: metering.EntryTopUp, Identity: "bob", WalletHref: app + "/wallets/x", Amount: metering.MaxAmount, CreditKey: "tokens", Source: "session cs_test_a1", CreatedAt: moment},
	}
	own := func(rows []supportpage.EventRow) []supportpage.EventRow {
		list := append([]supportpage.EventRow(nil), rows...)
		for i := range list {
			list[i].Identity = ""
		}
		return list
	}
	pager := component.Pages{Newer: app, Older: app + "?before=x"}
	options := []component.Option{{Text: "All"}, {Value: "x", Text: "One of them"}}
	refused := []component.Problem{{Field: "amount", Message: "Give an amount above zero."}, {Field: "reason", Message: "Say why."}}
	proof := supportpage.JournalProof{CreditKey: "tokens", BalanceProof: metering.BalanceProof{Entries: 2, Opening: metering.Balance{Debt: 7}, Valid: true, Known: true, Closing: balances[0]}, Stored: &balances[0]}
	wrong := supportpage.JournalProof{CreditKey: "coins", BalanceProof: metering.BalanceProof{Entries: 1}}
	used := metering.Event{
		EventID: "evt-1", EntityID: "room 7", Quantity: 12, OccurredAt: moment, CreatedAt: moment, Period: metering.DayOf(moment),
		Charge:     metering.Charge{Amount: 3_750_000_000, PricingMode: metering.Fixed, Cost: 1_500_000_000, QuantityPerUnit: 1, BasisPoints: 5_000, Billable: 5, FeatureRevision: 3},
		Properties: metering.NewProperties(map[string]string{"model": hostile, "project": endless}),
		Allowance:  metering.Allowance{Limit: 100, Used: 93, Covered: 7, Period: metering.MonthOf(moment), Overage: metering.OverageCredits},
	}
	charge := supportpage.Change{
		Frame: frame("wallets"), ID: "txn_01m7ewzp3pfr4976jxkvfa63gm", Kind: metering.EntryCharge, Seq: 12, Identity: hostile, WalletHref: app + "/wallets/x", CreditKey: "tokens",
		Delta: metering.Delta{Amount: 3_750_000_000, Out: true}, Before: balances[0], After: balances[3], CreatedAt: moment,
		Event: &supportpage.EventDetails{Event: used, RequestID: "req_01m7ewzp3pfr4976jxkvfa63gm", FeatureKey: "messages", FeatureName: "Messages", FeatureHref: app + "/features/messages/edit",
			Unit: "message", KeyName: "Server", KeyHref: app + "/keys/x", Derivation: used.Derivation()},
	}
	adjusted := charge
	adjusted.Kind, adjusted.Event, adjusted.Reason, adjusted.By, adjusted.IdempotencyKey = metering.EntryAdjustment, nil, "Granted <b>twice</b>", "Ann", endless
	returned := charge
	returned.Reverse = app + "/transactions/x/reverse"
	returned.Reversals = []supportpage.ReversalRow{{Href: app + "/transactions/y", Amount: metering.MaxAmount, CreditKey: "tokens", Reason: hostile, CreatedAt: moment}}
	bars := make([]component.Bar, 30)
	for i := range bars {
		bars[i] = component.Bar{Label: component.DayText(moment + int64(i)*86_400_000), Value: uint64(i * i), Text: component.CountText(uint64(i * i))}
	}
	return map[string]view{
		"wallets": supportpage.Wallets(supportpage.WalletList{Frame: frame("wallets"), Path: app + "/wallets", Query: "ann", Shows: options, Pages: pager, Wallets: []supportpage.WalletRow{
			{Href: app + "/wallets/x", Identity: hostile, Balances: balances, Subscription: &held, CreatedAt: moment}, {Href: app + "/wallets/y", Identity: endless, CreatedAt: moment},
		}}),
		"wallets-none": supportpage.Wallets(supportpage.WalletList{Frame: frame("wallets"), Path: app + "/wallets", Shows: options}),
		"journal": supportpage.WalletJournalPage(supportpage.WalletJournal{WalletHead: head("journal"), Pages: pager, Proofs: []supportpage.JournalProof{proof, wrong}, Lines: []supportpage.JournalRow{
			{Href: app + "/transactions/x", Seq: 2, Kind: metering.EntryCharge, About: "messages × 3", Deduplicated: true, Delta: metering.Delta{Out: true}, BalanceAfter: metering.MaxAmount, CreditKey: "tokens", CreatedAt: moment},
			{Href: app + "/transactions/z", Seq: 3, Kind: metering.EntryTransfer, About: endless, Other: hostile, OtherHref: app + "/wallets/y", Delta: metering.Delta{Amount: 1}, CreditKey: "tokens", CreatedAt: moment},
			{Href: app + "/transactions/y", Seq: 1, Kind: metering.EntryDispute, About: hostile, Delta: metering.Delta{Amount: metering.MaxAmount, Out: true}, DebtAfter: metering.MaxAmount, CreditKey: "coins", CreatedAt: moment},
		}}),
		"wallet-usage":        supportpage.WalletUsagePage(supportpage.WalletUsage{WalletHead: head("usage"), Events: own(events), Pages: pager}),
		"wallet-deposits":     supportpage.WalletDepositsPage(supportpage.WalletDeposits{WalletHead: head("deposits")}),
		"wallet-subscription": supportpage.WalletSubscriptionsPage(supportpage.WalletSubscriptions{WalletHead: head("subscription"), Subscriptions: []supportpage.SubscriptionRow{held}}),
		"adjust":              supportpage.AdjustPage(supportpage.AdjustForm{WalletHead: head(""), EntryID: "txn_x", Credits: options, Direction: "in", Amount: "much", Answered: component.Answered{Problems: refused}}),
		"transfer":            supportpage.TransferPage(supportpage.TransferForm{WalletHead: head(""), EntryID: "txn_x", Credits: options, Amount: "much", Answered: component.Answered{Problems: refused}}),
		"transfer-review": supportpage.TransferPage(supportpage.TransferForm{WalletHead: head(""), EntryID: "txn_x", To: hostile, CreditKey: "tokens", Amount: "1", Reason: endless,
			Preview: &supportpage.TransferPreview{ToHref: app + "/wallets/y", Amount: metering.MaxAmount, FromBefore: balances[0], ToBefore: balances[1], FromAfter: balances[2], ToAfter: balances[0]}}),
		"charge":          supportpage.Transaction(charge),
		"adjustment":      supportpage.Transaction(adjusted),
		"charge-reversed": supportpage.Transaction(returned),
		"reverse": supportpage.ReversePage(supportpage.ReverseForm{Frame: frame("wallets"), Path: app + "/transactions/x", Identity: hostile, CreditKey: "tokens",
			Left: metering.MaxAmount, EntryID: "txn_x", Amount: "much", Answered: component.Answered{Problems: refused}}),
		"check": supportpage.Check(supportpage.CheckForm{Frame: frame("check"), Path: app + "/check", Identity: hostile, Features: options, Quantity: "3", Answer: &supportpage.CheckAnswer{
			Code: "insufficient_balance", Title: "Denied: the balance does not cover the charge.", Balance: balances[1], Allowance: used.Allowance, Period: used.Period, WalletHref: app + "/wallets/x",
			Gates: []component.GateLine{
				{Question: "Not already billed this period", Outcome: metering.GatePassed},
				{Question: "Balance covers the charge", Outcome: metering.GateFailed, Numbers: "Needs 6 tokens, has 1 tokens.", Fix: "Deposit at least 5 tokens."},
			},
		}}),
		"usage": supportpage.Usage(supportpage.UsageExplorer{
			Frame: frame("usage"), Path: app + "/usage", Export: app + "/usage.csv", Ranges: []component.Tab{{Label: "30 days", Href: app, Current: true}, {Label: "This month", Href: app}}, Range: "30",
			Tiles: []component.Figure{{Label: "Charged", Value: "48,120.25", Unit: "tokens", Before: "Up 12% from 42,964.5 in the previous 30 days"}, {Label: "Events", Value: "1,204,331"}},
			Chart: component.Series{
				ID: "usage-chart", Title: "Credits charged by day", Unit: strings.Repeat("a_credit_of_64_char_", 3) + "keys", StepName: "Day", Before: "Previous period", Parts: []string{"Chat", hostile, "Other"},
				Bars: []component.Bar{
					{Label: "1 Nov", Value: 60, Text: "60", Before: 40, BeforeText: "40", Parts: []component.Slice{{Value: 30, Text: "30"}, {Value: 20, Text: "20"}, {Value: 10, Text: "10"}}},
					{Label: "2 Nov", Value: 90, Text: "90", Before: 0, BeforeText: "0", Parts: []component.Slice{{Value: 90, Text: "90"}, {Text: "0"}, {Text: "0"}}},
				},
			},
			GroupBy: "Feature", Groups: []supportpage.UsageGroup{{Name: hostile, Detail: "messages", Href: app + "/events", Events: 1_204_331, Quantity: "99,999,999,999,999,999", Unit: "message", Included: "20,000", Credit: "tokens", Charged: "9,999,999,999.99", Exact: "9,999,999,999.999999999"}},
			TopMonth: "November 2026", Top: []supportpage.UsageCustomer{{Identity: endless, Href: app + "/wallets/x", Events: 12, Charged: "1.5", Exact: "1.5", Credit: "tokens"}, {Identity: hostile, Href: app + "/wallets/x", Events: 1, Charged: "0.0001", Credit: "tokens"}},
			Until: moment, Shows: options, Bys: options, Buckets: options, Credits: options, Zones: options, Comparisons: options, FeatureFilter: options,
		}),
		"events":        supportpage.Events(supportpage.EventList{Frame: frame("events"), Path: app + "/events", Features: options, Events: events, Unfinished: true, Pages: pager}),
		"events-usual":  supportpage.Events(supportpage.EventList{Frame: frame("events"), Path: app + "/events", Features: options, Events: usual}),
		"deposits":      supportpage.Deposits(supportpage.DepositList{Frame: frame("deposits"), Path: app + "/deposits", Export: app + "/deposits.csv", Kinds: options, Credits: options, From: "2026-01-01", Active: true, Deposits: deposits, Pages: pager}),
		"subscriptions": supportpage.Subscriptions(supportpage.SubscriptionList{Frame: frame("subscriptions"), Path: app + "/subscriptions", Statuses: options, Subscriptions: []supportpage.SubscriptionRow{held}, Pages: pager}),
		"checkouts": supportpage.Checkouts(supportpage.CheckoutList{Frame: frame("checkouts"), Path: app + "/checkouts", Kinds: options, Checkouts: []supportpage.CheckoutRow{
			{ID: "chk_01m7ewzp3pfr4976jxkvfa63gm", Sells: "team", Price: component.Sum{AmountCents: 2900, Currency: "usd"}, Identity: hostile, WalletHref: app + "/wallets?q=x", State: component.Badge{Text: "Open", Tone: "accent"}, CreatedAt: moment, ExpiresAt: moment},
		}}),
		"requests": supportpage.Requests(supportpage.RequestList{Frame: frame("requests"), Path: app + "/requests", Counted: 12_000, Failures: 3, Classes: options, Keys: options, Pages: pager, Requests: []supportpage.RequestRow{
			{ID: "req_01m7ewzp3pfr4976jxkvfa63gm", At: moment, Method: "POST", Route: "/v1/events", Status: 409, Code: "insufficient_balance", CodeHref: "/docs/errors/insufficient_balance", TookMicros: 2_345, KeyName: "Server", KeyMasked: "psr_test_…9fQ2", KeyHref: app + "/keys/x"},
			{ID: "req_01m7ewzp3pfr4976jxkvfa63gn", At: moment, Method: "PATCH", Route: "/v1/wallets/{identity}/billing-period", Status: 500, Code: "internal_error", CodeHref: "/docs/errors/internal_error", TookMicros: 15_000_000, KeyName: "Server"},
			{ID: "req_01m7ewzp3pfr4976jxkvfa63gp", At: moment, Method: "POST", Route: "/v1/events", Status: 200, TookMicros: 900, KeyName: "Server", Href: app + "/requests/x"},
		}}),
		"requests-failed": supportpage.Requests(supportpage.RequestList{Frame: frame("requests"), Path: app + "/requests", Failed: true, Counted: 12_000, Failures: 3, KeptDays: 30, Classes: options, Filtered: true, Unfinished: true, Pages: pager, Requests: []supportpage.RequestRow{
			{ID: "req_01m7ewzp3pfr4976jxkvfa63gm", At: moment, Method: "POST", Route: "/v1/events", Status: 409, Code: "insufficient_balance", CodeHref: "/docs/errors/insufficient_balance", TookMicros: 2_345, KeyName: "Server", KeyMasked: "psr_test_…9fQ2", KeyHref: app + "/keys/x", Identity: "customer-with-a-rather-long-name@example.com", WalletHref: app + "/wallets?q=x", Feature: "chat-message"},
			{ID: "req_01m7ewzp3pfr4976jxkvfa63gn", At: moment, Method: "GET", Route: "/v1/wallets/{identity}", Status: 404, Code: "wallet_not_found", CodeHref: "/docs/errors/wallet_not_found", TookMicros: 900, KeyName: "Server"},
		}}),
		"request": supportpage.RequestPage(supportpage.RequestDetails{
			Frame: frame("requests"), List: app + "/requests", ID: "req_01m7ewzp3pfr4976jxkvfa63gm", Known: true, Message: "The balance does not cover this charge.", Denials: []supportpage.DenialRow{denied},
			Row: supportpage.RequestRow{At: moment, Method: "POST", Route: "/v1/events/batch", Status: 409, Code: "insufficient_balance", CodeHref: "/docs/errors/insufficient_balance", TookMicros: 2_345, KeyName: "Server", KeyMasked: "psr_test_…9fQ2", Identity: hostile, WalletHref: app + "/wallets/x", Feature: "messages"},
		}),
		"denials": supportpage.Denials(supportpage.DenialList{Frame: frame("denials"), Path: app + "/denials", Check: app + "/check", Features: options, Reasons: options, Active: true, KeptDays: 30, Denials: []supportpage.DenialRow{denied, usualDenial}, Unfinished: true, Pages: pager}),
		"denial": supportpage.DenialPage(supportpage.DenialDetails{
			Frame: frame("denials"), List: app + "/denials", ID: "dny_01m7ewzp3pfr4976jxkvfa63gm", Code: "insufficient_balance", CodeHref: "/docs/errors/insufficient_balance", Title: "The balance does not cover this charge.",
			Identity: hostile, WalletHref: app + "/wallets/x", Wallet: app + "/wallets/x/denials", FeatureKey: "messages", FeatureName: "Messages", Unit: "message", Quantity: 4, EventID: "0199d1c7-6c1e-7b61-b9ad-6a4fd1f2a001",
			Charge:  metering.Charge{Amount: 6_000_000_000, PricingMode: metering.Fixed, Cost: 1_500_000_000, QuantityPerUnit: 1, BasisPoints: 8_000},
			Balance: metering.Balance{CreditKey: "tokens", Amount: 1_000_000_000}, At: moment, KeyName: "Server", KeyHref: app + "/keys/x", RequestID: "req_01m7ewzp3pfr4976jxkvfa63gm", RequestHref: app + "/requests/x", Again: app + "/check",
			Gates: []component.GateLine{{Question: "Balance covers the charge", Outcome: metering.GateFailed, Numbers: "Needs 6 tokens, has 1 tokens.", Fix: "Deposit at least 5 tokens."}},
		}),
		"overview-new": supportpage.OverviewPage(supportpage.Overview{
			Frame: frame("overview"), Path: app, Days: []component.Tab{{Label: "30 days", Href: app, Current: true}}, Tiles: []component.Figure{{Label: "Charged", Value: "0", Before: "None in the previous 30 days"}},
			Quickstart: app + "/quickstart", Check: app + "/check",
		}),
		"overview": supportpage.OverviewPage(supportpage.Overview{
			Frame: frame("overview"), Path: app, Days: []component.Tab{{Label: "30 days", Href: app, Current: true}, {Label: "Today", Href: app + "?days=1"}},
			Tiles: []component.Figure{
				{Label: "Charged", Value: "48,120.25", Unit: "tokens", Before: "Up 12% from 42,964.5 in the previous 30 days", Href: app + "/events"},
				{Label: "Denied", Value: "37", Before: "None in the previous 30 days", Href: app + "/denials"}, {Label: "Active wallets", Value: "≈ 12,040", Before: "No change"},
				{Label: "Deposits", Value: "99,999,999,999,999,999.999999999", Unit: "tokens"},
			},
			Uses: component.Series{ID: "uses-chart", Title: "Usage by day", Unit: "events", StepName: "Day", Bars: bars}, Denied: component.Series{ID: "denied-chart", Title: "Denials by day", Unit: "denials", StepName: "Day", Bars: bars},
			Attention: []supportpage.Concern{{Text: "Plan \"Team\" failed to sync with the payment provider", More: "No such currency: <b>xyz</b>", Tone: "danger", Link: "Fix plan", Href: app + "/plans/team/edit"}, {Text: "2 balances are in debt", Tone: "warn", Link: "View wallets", Href: app + "/wallets?show=debt"}},
			Steps:     []component.Step{{Text: "Create a credit", Done: true}, {Text: "Create a feature", Hint: "What your customers use.", Href: app + "/features"}},
			Top:       []supportpage.TopFeature{{Key: "messages", Uses: 1_204_331, Denied: 37}}, Reasons: []supportpage.TopReason{{Text: "Balance too low", Code: "insufficient_balance", Href: "/docs/errors/insufficient_balance", Count: 37}},
		}),
	}
}

func TestARowOpensItsOwnPage(t *testing.T) {
	t.Parallel()
	pages := supportPages()
	const transaction = "/o/acme/a/shop/transactions/x"
	address := serve(t, map[string]view{"/events": pages["events-usual"], transaction: pages["charge"]})
	tab := Open(t, Desktop)
	tab.Visit(address + "/events")
	tab.Follow("tbody td[data-label='Quantity']")
	if got := tab.Address(); got != address+transaction {
		t.Errorf("a click beside the links opens %s", got)
	}
}

func TestSupportPagesAreAccessible(t *testing.T) {
	t.Parallel()
	lookOver(t, supportPages(), screensOfSample)
}
