package main

import (
	"context"
	"strings"
	"time"
)

// scenario is one measurement, repeated in every round.
type scenario struct {
	name    string
	prepare func(*bench, context.Context) error
	run     func(*bench, context.Context) (sample, error)
}

// hotWallet is the first one past those that are used evenly.
const hotWallet = fewWallets

// phases are prepared and measured one after the other. Inside a phase, what is
// compared stands close together, so that both meet the same noise.
var phases = [][]scenario{
	{
		{"events-64", prepareMain, events(64, evenly(fewWallets))},
		{"alerts-64", prepareAlerted, alerted},
		{"pgbench-tpcb-64", prepareReference, reference("tpcb-like", 64)},
		{"pgbench-simple-64", prepareReference, reference("simple-update", 64)},
		{"events-1", prepareMain, events(1, evenly(fewWallets))},
		{"pgbench-simple-1", prepareReference, reference("simple-update", 1)},
		{"pgbench-tpcb-1", prepareReference, reference("tpcb-like", 1)},
		{"events-16", prepareMain, events(16, evenly(fewWallets))},
		{"events-256", prepareMain, events(256, evenly(fewWallets))},
		{"hot-wallet", prepareMain, events(64, always(hotWallet))},
		{"many-wallets", prepareMany, manyWallets},
		{"check", prepareMain, checksToEvents(1, 0)},
		{"mixed", prepareMain, checksToEvents(4, 1)},
		{"batches-100", prepareMain, batches},
		{"neighbour-calm", prepareMain, neighbour(64, false)},
		{"neighbour-flooded", prepareMain, neighbour(64, true)},
		{"light-neighbour-calm", prepareMain, neighbour(4, false)},
		{"light-neighbour-flooded", prepareMain, neighbour(4, true)},
		{"two-nodes", prepareShared, twoNodes},
	},
	{
		{"stored-none", prepareStored, storedNone},
		{"stored-many", prepareStored, storedMany},
	},
	pageScenarios(),
}

// storedPhase is the first of those that a quick run leaves out: they take minutes
// to prepare.
const storedPhase = 1

func scenarioNames() (names []string) {
	for _, phase := range phases {
		for _, s := range phase {
			names = append(names, s.name)
		}
	}
	return names
}

func known(name string) bool {
	for _, one := range scenarioNames() {
		if named(one, name) {
			return true
		}
	}
	return false
}

// named reports whether the asked name means the scenario.
func named(scenario, asked string) bool {
	return scenario == asked || strings.HasPrefix(scenario, asked+"-")
}

// chosen is what of a phase this run measures.
func (o options) chosen(number int) (scenarios []scenario) {
	for _, s := range phases[number] {
		wanted := len(o.only) == 0 && !(o.quick && number >= storedPhase)
		for _, asked := range o.only {
			wanted = wanted || named(s.name, asked)
		}
		if wanted {
			scenarios = append(scenarios, s)
		}
	}
	return scenarios
}

func prepareMain(b *bench, ctx context.Context) (err error) {
	if b.main != nil {
		return nil
	}
	if b.first, err = b.harness.startNode(ctx, ""); err != nil {
		return err
	}
	if b.main, err = b.newTenant(ctx, b.first, "Few wallets", hotWallet+1); err != nil {
		return err
	}
	// The neighbour's rows come after ours in every index, as with all applications
	// but the youngest. Alone, we would add to the end of an index, where pages are
	// split far better.
	if b.neighbour, err = b.newTenant(ctx, b.first, "Neighbour", fewWallets); err != nil {
		return err
	}
	return b.store(ctx, b.neighbour, fewWallets)
}

// prepareAlerted is apart from the rest: releases without alert rules are measured too.
func prepareAlerted(b *bench, ctx context.Context) (err error) {
	if err := prepareMain(b, ctx); err != nil || b.alerted != nil {
		return err
	}
	if b.alerted, err = b.newTenant(ctx, b.first, "Alerts", fewWallets); err != nil {
		return err
	}
	return b.alerted.watch(ctx, b.first)
}

func prepareMany(b *bench, ctx context.Context) (err error) {
	if err := prepareMain(b, ctx); err != nil || b.many != nil {
		return err
	}
	b.many, err = b.newTenant(ctx, b.first, "Many wallets", b.options.many)
	return err
}

// prepareShared gives two nodes an application of their own: what one node
// remembers of a wallet would otherwise be wrong at the start of other rounds.
func prepareShared(b *bench, ctx context.Context) (err error) {
	if err := prepareMain(b, ctx); err != nil || b.shared != nil {
		return err
	}
	if b.second, err = b.harness.startNode(ctx, mainDatabase); err != nil {
		return err
	}
	b.shared, err = b.newTenant(ctx, b.first, "Shared wallets", fewWallets)
	return err
}

func prepareReference(b *bench, ctx context.Context) error {
	if b.reference {
		return nil
	}
	b.reference = true
	return b.harness.postgres.prepareReference(ctx)
}

func prepareStored(b *bench, ctx context.Context) (err error) {
	if b.empty.node != nil {
		return nil
	}
	if b.empty, err = b.newGrown(ctx, "bench_empty", 0); err != nil {
		return err
	}
	return b.prepareFull(ctx)
}

func (b *bench) prepareFull(ctx context.Context) (err error) {
	if b.full.node != nil {
		return nil
	}
	b.full, err = b.newGrown(ctx, "bench_full", b.options.stored)
	return err
}

func events(connections int, wallets picker) func(*bench, context.Context) (sample, error) {
	return func(b *bench, ctx context.Context) (sample, error) {
		return b.load(ctx, load{tenant: b.main, nodes: []*node{b.first}, connections: connections, events: 1, wallets: wallets})
	}
}

// alerted is events-64 with a rule that watches every wallet and that no charge crosses.
func alerted(b *bench, ctx context.Context) (sample, error) {
	return b.load(ctx, load{tenant: b.alerted, nodes: []*node{b.first}, connections: 64, events: 1, wallets: evenly(fewWallets)})
}

func checksToEvents(checks, events int) func(*bench, context.Context) (sample, error) {
	return func(b *bench, ctx context.Context) (sample, error) {
		return b.load(ctx, load{tenant: b.main, nodes: []*node{b.first}, connections: 64, checks: checks, events: events, wallets: evenly(fewWallets)})
	}
}

// batches is a load of batches of 100 events.
func batches(b *bench, ctx context.Context) (sample, error) { return b.load(ctx, b.flood()) }

func (b *bench) flood() load {
	return load{tenant: b.main, nodes: []*node{b.first}, connections: 16, events: 1, batch: 100, wallets: evenly(fewWallets)}
}

// neighbour is the load of another application, alone or beside the batches.
func neighbour(connections int, flooded bool) func(*bench, context.Context) (sample, error) {
	return func(b *bench, ctx context.Context) (sample, error) {
		l := load{tenant: b.neighbour, nodes: []*node{b.first}, connections: connections, events: 1, wallets: evenly(fewWallets)}
		if flooded {
			l.beside = new(b.flood())
		}
		return b.load(ctx, l)
	}
}

func manyWallets(b *bench, ctx context.Context) (sample, error) {
	return b.load(ctx, load{tenant: b.many, nodes: []*node{b.first}, connections: 64, events: 1, wallets: byRank(b.options.many)})
}

func twoNodes(b *bench, ctx context.Context) (sample, error) {
	return b.load(ctx, load{tenant: b.shared, nodes: []*node{b.first, b.second}, connections: 64, events: 1, wallets: evenly(fewWallets)})
}

func storedNone(b *bench, ctx context.Context) (sample, error) { return b.grown(ctx, b.empty) }
func storedMany(b *bench, ctx context.Context) (sample, error) { return b.grown(ctx, b.full) }

func (b *bench) grown(ctx context.Context, g grown) (sample, error) {
	return b.load(ctx, load{tenant: g.tenant, nodes: []*node{g.node}, connections: 64, events: 1, wallets: evenly(fewWallets)})
}

func reference(script string, clients int) func(*bench, context.Context) (sample, error) {
	return func(b *bench, ctx context.Context) (sample, error) {
		return b.harness.postgres.reference(ctx, script, clients, b.options.length)
	}
}

// warmUp is what passes before answers count, in proportion to the length. The server
// reads each of the few wallets again that batches changed or many wallets displaced, when
// it is first used: an eighth was too short for all of them.
func (o options) warmUp() time.Duration { return o.length / 2 }
