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
	{"wallets-debt", "{app}/wallets?show=debt", anyWallet},
	{"wallets-hold", "{app}/wallets?show=hold", anyWallet},
	{"wallets-plan", "{app}/wallets?show=plan:" + planKey, anyWallet},
	{"journal", "{app}/wallets/{wallet}", "{identity}"},
	{"journal-deep", "{app}/wallets/{wallet}?before={half}", "{identity}"},
	{"usage", "{app}/wallets/{wallet}/usage", "{identity}"},
	{"usage-deep", "{app}/wallets/{wallet}/usage?before={half}", "{identity}"},
	{"wallet-deposits", "{app}/wallets/{wallet}/deposits", "{identity}"},
	{"wallet-plans", "{app}/wallets/{wallet}/subscription", "{identity}"},
	{"transaction", "{app}/transactions/{transaction}", "{event}"},
	{"check", "{app}/check?identity={identity}&feature=" + featureKey, "{identity}"},
	{"events", "{app}/events", anyWallet},
	{"events-deep", "{app}/events?before={transaction}", anyWallet},
	{"events-feature", "{app}/events?feature=" + featureKey, anyWallet},
	{"events-unused", "{app}/events?feature=feature-00", "feature-00"},
	{"events-quiet", "{quiet}/events", anyWallet},
	{"events-quiet-feature", "{quiet}/events?feature=" + featureKey, anyWallet},
	{"event-id", "{app}/events?event={event}", "{event}"},
	{"deposits", "{app}/deposits", anyWallet},
	{"deposits-day", "{app}/deposits?kind=deposit&from={day}&to={day}", anyWallet},
	{"deposits-rare", "{app}/deposits?kind=grant", anyWallet},
	{"deposits-none", "{app}/deposits?kind=top-up", "top-up"},
	{"subscriptions", "{app}/subscriptions", anyWallet},
	{"subscriptions-hold", "{app}/subscriptions?status=hold", anyWallet},
	{"subscriptions-rare", "{app}/subscriptions?status=paused", "Paused"},
	{"subscriptions-none", "{app}/subscriptions?status=unpaid", "Unpaid"},
	{"checkouts", "{app}/checkouts", anyWallet},
	{"checkouts-wallet", "{app}/checkouts?identity={identity}", "{identity}"},
	{"requests", "{app}/requests", "/v1/events"},
	{"requests-failed", "{app}/requests?show=failed", "insufficient_balance"},
	{"keys", "{app}/keys", "command line"},
	{"features", "{app}/features", "feature-00"},
	{"plans", "{app}/plans", planKey},
	{"credits", "{app}/credits", "credits"},
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
	fmt.Fprintf(b.progress, "making %d wallets for the pages…\n", b.options.many)
	wallets := g.tenant.walletsSQL(fewWallets, fewWallets+b.options.many, time.Now().Add(-storedOver), storedOver)
	if _, err := b.harness.postgres.query(ctx, g.tenant.database, wallets); err != nil {
		return err
	}
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
		"{day}", time.Now().Add(-storedOver/2).UTC().Format(time.DateOnly)), err
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
