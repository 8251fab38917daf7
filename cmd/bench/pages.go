package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"purser/ids"
)

// pages are the pages that list or search, each with a text that it must show:
// a page that found nothing would be fast for the wrong reason. What is in braces is
// found in the database once it is filled.
var pages = []struct{ name, path, shows string }{
	{"overview", "{app}", "Active wallets"},
	{"overview-today", "{app}?days=1", "Active wallets"},
	{"organization", "{org}", "Few wallets"},
	{"wallets", "{app}/wallets", anyWallet},
	{"wallets-deep", "{app}/wallets?before={wallet}", anyWallet},
	{"wallet-exact", "{app}/wallets?q={identity}", "{identity}"},
	{"wallet-prefix", "{app}/wallets?q=wallet-000", "wallet-000"},
	{"wallet-part", "{app}/wallets?q={part}", "{identity}"},
	{"wallet-nowhere", "{app}/wallets?q=no-such-customer", "no-such-customer"},
	{"wallets-oldest", "{app}/wallets?sort=oldest", anyWallet},
	{"wallets-identity", "{app}/wallets?sort=identity", anyWallet},
	{"wallets-identity-deep", "{app}/wallets?sort=identity&before={wallet}", anyWallet},
	{"search", "{app}/search?q={part}", "{identity}"},
	{"search-id", "{app}/search?q={transaction}", "{transaction}"},
	{"search-nowhere", "{app}/search?q=no-such-customer", "no-such-customer"},
	{"wallets-debt", "{app}/wallets?show=debt", anyWallet},
	{"wallets-hold", "{app}/wallets?show=hold", anyWallet},
	{"wallets-plan", "{app}/wallets?show=plan:" + planKey, anyWallet},
	{"journal", "{app}/wallets/{wallet}", "{identity}"},
	{"journal-deep", "{app}/wallets/{wallet}?before={half}", "{identity}"},
	{"wallet-usage", "{app}/wallets/{wallet}/usage", "{identity}"},
	{"wallet-usage-deep", "{app}/wallets/{wallet}/usage?before={half}", "{identity}"},
	{"wallet-denials", "{app}/wallets/{wallet}/denials", "{identity}"},
	{"wallet-notifications", "{app}/wallets/{wallet}/notifications", "{identity}"},
	{"wallet-deposits", "{app}/wallets/{wallet}/deposits", "{identity}"},
	{"wallet-plans", "{app}/wallets/{wallet}/subscription", "{identity}"},
	{"transaction", "{app}/transactions/{transaction}", "{event}"},
	{"check", "{app}/check?identity={identity}&feature=" + featureKey, "{identity}"},
	{"events", "{app}/events", anyWallet},
	{"events-day", "{app}/events?from={today}&to={today}", anyWallet},
	{"events-old-day", "{app}/events?from={past}&to={past}&feature=" + featureKey, anyWallet},
	{"events-customer", "{app}/events?identity={identity}&feature=" + featureKey, "{identity}"},
	{"events-customer-none", "{app}/events?identity={identity}&from={day}&to={day}", "{identity}"},
	{"events-deep", "{app}/events?before={transaction}", anyWallet},
	{"events-feature", "{app}/events?feature=" + featureKey, anyWallet},
	{"events-unused", "{app}/events?feature=" + unusedKey, unusedKey},
	{"events-quiet", "{quiet}/events", anyWallet},
	{"events-quiet-feature", "{quiet}/events?feature=" + featureKey, anyWallet},
	{"event-id", "{app}/events?event={event}", "{event}"},
	{"deposits", "{app}/deposits", anyWallet},
	{"deposits-day", "{app}/deposits?kind=deposit&from={day}&to={day}", anyWallet},
	{"deposits-oldest", "{app}/deposits?sort=oldest", anyWallet},
	{"deposits-customer", "{app}/deposits?identity={identity}", "{identity}"},
	{"deposits-rare", "{app}/deposits?kind=grant", anyWallet},
	{"deposits-none", "{app}/deposits?kind=top-up", "top-up"},
	{"subscriptions", "{app}/subscriptions", anyWallet},
	{"subscriptions-hold", "{app}/subscriptions?status=hold", anyWallet},
	{"subscriptions-oldest", "{app}/subscriptions?sort=oldest", anyWallet},
	{"subscriptions-plan", "{app}/subscriptions?plan=" + planKey, anyWallet},
	{"subscriptions-plan-oldest", "{app}/subscriptions?sort=oldest&status=past_due&plan=" + planKey, anyWallet},
	{"subscriptions-customer", "{app}/subscriptions?identity={identity}", "{identity}"},
	{"subscriptions-rare", "{app}/subscriptions?status=paused", "Paused"},
	{"subscriptions-none", "{app}/subscriptions?status=unpaid", "Unpaid"},
	{"checkouts", "{app}/checkouts", anyWallet},
	{"checkouts-wallet", "{app}/checkouts?identity={identity}", "{identity}"},
	{"requests", "{app}/requests", "/v1/events"},
	{"requests-failed", "{app}/requests?show=failed", "insufficient_balance"},
	{"requests-customer", "{app}/requests?show=failed&identity=bench&status=4", "insufficient_balance"},
	{"denials", "{app}/denials", anyWallet},
	{"denials-customer", "{app}/denials?identity={identity}", "{identity}"},
	{"denials-feature", "{app}/denials?feature=" + featureKey + "&reason=insufficient_balance", anyWallet},
	{"denials-none", "{app}/denials?reason=subscription_inactive", "on hold"},
	{"usage", "{app}/usage", "calls"},
	{"usage-today", "{app}/usage?range=1", "calls"},
	{"usage-92", "{app}/usage?from={quarter}&to={today}&compare=before", "calls"},
	{"usage-92-zone", "{app}/usage?from={quarter}&to={today}&zone=Europe/Berlin&show=quantity", "calls"},
	{"usage-year", "{app}/usage?range=year", "calls"},
	{"usage-key", "{app}/usage?by=key", "API key"},
	{"usage-key-92", "{app}/usage?by=key&from={quarter}&to={today}&compare=before", "API key"},
	{"usage-entity", "{app}/usage?by=entity", "order-"},
	{"usage-entity-92", "{app}/usage?by=entity&from={quarter}&to={today}", "order-"},
	{"usage-property", "{app}/usage?by=property:model&compare=before", "model-1"},
	{"usage-property-92", "{app}/usage?by=property:model&from={quarter}&to={today}&compare=before", "model-1"},
	{"usage-values", "{app}/usage?by=property:session", "session-"},
	{"usage-values-92", "{app}/usage?by=property:session&from={quarter}&to={today}&compare=before", "session-"},
	{"usage-values-feature", "{app}/usage?by=property:session&show=quantity&feature=" + featureKey, "session-"},
	{"keys", "{app}/keys", "command line"},
	{"features", "{app}/features", "feature-00"},
	{"plans", "{app}/plans", planKey},
	{"credits", "{app}/credits", "credits"},
	{"plan", "{app}/plans/" + planKey + "/view", planKey},
	{"quickstart", "{app}/quickstart", "curl"},
	{"webhooks", "{app}/webhooks", "Webhooks"},
	{"notifications", "{app}/notifications", "Notifications"},
	{"alert-rules", "{app}/settings/alerts", "Alerts"},
	{"settings", "{app}/settings", "Settings"},
	{"payment-issues", "{app}/alerts", "issues"},
	{"jobs", "{app}/jobs", "obs"},
	{"members", "{org}/members", "bench@example.com"},
	{"audit", "{org}/audit", "organization"},
	{"audit-deep", "{org}/audit?action=organization&before=60", "organization"},
}

// anyWallet begins every identity where a page shows it.
const anyWallet = ">" + identityPrefix

// pagePrefix begins the names of the scenarios that are pages.
const pagePrefix = "page-"

// pageScenarios are one for each page.
func pageScenarios() (all []scenario) {
	for _, p := range pages {
		all = append(all, scenario{pagePrefix + p.name, preparePages, func(b *bench, ctx context.Context) (sample, error) {
			return b.measurePage(ctx, b.pathParams.Replace(p.path), b.pathParams.Replace(p.shows))
		}})
	}
	return all
}

// preparePages fills the application whose events are already many.
func preparePages(b *bench, ctx context.Context) error {
	if b.browser != nil {
		return nil
	}
	if err := b.prepareFull(ctx); err != nil {
		return err
	}
	g := b.full
	client, err := g.node.signUp(ctx, g.tenant)
	if err != nil {
		return err
	}
	if err := b.fillReports(ctx, g, client); err != nil {
		return err
	}
	b.browser = client
	b.pathParams, err = b.findPathParams(ctx, g.tenant, client)
	return err
}

// findPathParams finds a wallet with very many entries, and one of its events from half
// the time ago.
func (b *bench) findPathParams(ctx context.Context, t *tenant, client *browser) (*strings.Replacer, error) {
	identity := identityOf(fewWallets / 2)
	row, err := b.harness.postgres.query(ctx, t.database, fmt.Sprintf(`
		SELECT w.id, e.seq, e.tx_id, encode(substr(e.event_id, 2), 'hex')::uuid
		FROM wallets w JOIN usage_events e ON e.app_id = w.app_id AND e.wallet_id = w.id AND e.seq = w.last_seq / 2 + 1
		WHERE w.app_id = '%s' AND w.identity = '%s'`, t.app, identity))
	if err != nil {
		return nil, err
	}
	columns := strings.Split(row, "|")
	if len(columns) != 4 {
		return nil, fmt.Errorf("psql answered %q", row)
	}
	wallet, err := wireID(ids.Wallet, columns[0])
	if err != nil {
		return nil, err
	}
	transaction, err := wireID(ids.Transaction, columns[2])
	return strings.NewReplacer("{app}", client.app, "{quiet}", client.org+"/a/"+strings.ToLower(quietName), "{org}", client.org, "{identity}", identity, "{wallet}", wallet, "{half}", columns[1],
		"{transaction}", transaction, "{event}", columns[3],
		"{part}", identity[len(identityPrefix)-2:],
		"{today}", time.Now().UTC().Format(time.DateOnly), "{quarter}", time.Now().AddDate(0, 0, -91).UTC().Format(time.DateOnly),
		"{past}", time.Now().Add(-storedOver/2).UTC().Format(time.DateOnly), "{day}", time.Now().Add(-3*storedOver/2).UTC().Format(time.DateOnly)), err
}

// warmupLoads are not measured: the first load reads from disk. Later ones are, although
// Postgres plans a statement five times before it uses a generic plan.
const warmupLoads = 1

// measurePage loads a page repeatedly, one load at a time, for at most the length of a
// measurement.
func (b *bench) measurePage(ctx context.Context, path, shows string) (sample, error) {
	var latencies histogram
	nodes := []*node{b.full.node}
	var start time.Time
	var before cpu
	for i := range warmupLoads + b.options.pageLoads {
		if i == warmupLoads {
			start, before = time.Now(), cpuNow(b.harness.postgres.postmaster, nodes)
		}
		sentAt := time.Now()
		if i > warmupLoads && sentAt.Sub(start) > b.options.length {
			break
		}
		_, page, err := b.browser.get(ctx, path)
		if err != nil {
			return sample{}, b.full.node.explain(err)
		}
		took := time.Since(sentAt)
		if !strings.Contains(page, shows) {
			return sample{}, fmt.Errorf("%s does not show %q", path, shows)
		}
		if i >= warmupLoads {
			latencies.add(took)
		}
	}
	passed, used := time.Since(start), cpuNow(b.harness.postgres.postmaster, nodes).since(before)
	loads := float64(latencies.total)
	return sample{
		Rate:         loads / passed.Seconds(),
		P50MS:        ms(latencies.quantile(0.50)),
		P99MS:        ms(latencies.quantile(0.99)),
		ServerCPU:    us(used.servers) / loads,
		PostgresCPU:  us(used.postgres) / loads,
		GeneratorCPU: us(used.generator) / loads,
		Strangers:    used.others(passed),
	}, nil
}
