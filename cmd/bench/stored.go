package main

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// grown is a node on a database of its own, that has or has not grown.
type grown struct {
	node   *node
	tenant *tenant
	quiet  *tenant // beside it, if it has grown: an application that is hardly used
}

const (
	// storedAtOnce is how many events one statement writes: enough to be fast, and
	// few enough for a Ctrl-C to be heard.
	storedAtOnce = 500_000
	// storedOver is the time over which stored events are spread, up to now.
	storedOver = 30 * 24 * time.Hour

	quietName    = "Quiet"
	quietWallets = 10
	quietEvents  = 2_000 // one in twenty minutes
)

// newGrown makes a database whose wallets have that many events in all.
func (b *bench) newGrown(ctx context.Context, database string, events int) (g grown, err error) {
	if _, err := b.harness.postgres.query(ctx, mainDatabase, "CREATE DATABASE "+database); err != nil {
		return g, err
	}
	if g.node, err = b.harness.startNode(ctx, database); err != nil {
		return g, err
	}
	if g.tenant, err = b.newTenant(ctx, g.node, "Few wallets", fewWallets); err != nil || events == 0 {
		return g, err
	}
	if g.quiet, err = b.newTenant(ctx, g.node, quietName, quietWallets); err != nil {
		return g, err
	}
	return g, b.storeTogether(ctx, share{g.tenant, events}, share{g.quiet, quietEvents})
}

// share is how many of the stored events are a tenant's.
type share struct {
	*tenant
	events int
}

// store gives the tenant's wallets that many events in all, past the server.
func (b *bench) store(ctx context.Context, t *tenant, events int) error {
	return b.storeTogether(ctx, share{t, events})
}

// storeTogether stores the events of several tenants of a database in the order of
// time, so that they lie between each other as they do in life.
func (b *bench) storeTogether(ctx context.Context, shares ...share) error {
	all := 0
	for _, s := range shares {
		all += s.events
	}
	first, steps := time.Now().Add(-storedOver).UnixMilli(), (all+storedAtOnce-1)/storedAtOnce
	for step := range steps {
		var rows []string
		for _, s := range shares {
			moment := fmt.Sprintf("(%d + g * %d / %d)", first, storedOver.Milliseconds(), s.events)
			rows = append(rows, s.eventsSQL(s.events*step/steps, s.events*(step+1)/steps, moment))
		}
		if _, err := b.harness.postgres.query(ctx, shares[0].database, insertEventsSQL(rows)); err != nil {
			return err
		}
		fmt.Fprintf(b.progress, "stored %d of %d events\n", all*(step+1)/steps, all)
	}
	for _, s := range shares {
		s.stored = s.events
		if _, err := b.harness.postgres.query(ctx, s.database, s.chargedSQL()); err != nil {
			return err
		}
	}
	return nil
}

// insertEventsSQL writes events as the server would have, in the order of time: the
// indexes grow as they do in life.
func insertEventsSQL(rows []string) string {
	return `
		INSERT INTO usage_events (app_id, org_id, created_at, tx_id, event_id, wallet_id, key_id, seq, price_number, quantity,
			amount_nanocredits, balance_after)
		` + strings.Join(rows, " UNION ALL ") + ` ORDER BY 3`
}

// eventsSQL selects the rows of events, each wallet in turn.
func (t *tenant) eventsSQL(from, to int, moment string) string {
	return fmt.Sprintf(`
		SELECT w.app_id, w.org_id, %[1]s, %[2]s, '\x00'::bytea || uuid_send(%[3]s), w.id, '%[4]s'::uuid, 2 + g / %[5]d, f.price_number, 1,
			%[6]d::numeric, %[7]d - %[6]d * (1 + g / %[5]d)::numeric
		FROM generate_series(%[8]d::bigint, %[9]d - 1) g
		JOIN wallets w ON w.app_id = '%[10]s' AND w.identity = '%[11]s' || lpad((g %% %[5]d)::text, %[12]d, '0')
		JOIN features f ON f.app_id = '%[10]s' AND f.key = '%[13]s'`,
		moment, uuidAt(moment, "g"), uuidAt(moment, "g"), t.key, t.wallets,
		int64(cost), int64(deposit), from, to, t.app, identityPrefix, identityDigits, featureKey)
}

// chargedSQL brings wallets, balances and the feature to where the stored events
// leave them.
func (t *tenant) chargedSQL() string {
	each := t.stored / t.wallets
	return fmt.Sprintf(`
		BEGIN;
		UPDATE wallets SET version = version + 1, last_seq = last_seq + %[2]d, charged = true WHERE app_id = '%[1]s';
		UPDATE balances SET amount_nanocredits = amount_nanocredits - %[3]d WHERE app_id = '%[1]s';
		UPDATE features SET deduplication_locked = true WHERE app_id = '%[1]s';
		COMMIT`, t.app, each, int64(each)*cost)
}
