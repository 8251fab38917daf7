package main

import (
	"context"
	"fmt"
	"time"
)

// grown is a node on a database of its own, that has or has not grown.
type grown struct {
	node   *node
	tenant *tenant
}

// storedAtOnce is how many events one statement writes: enough to be fast, and
// few enough for a Ctrl-C to be heard.
const storedAtOnce = 500_000

// storedOver is the time over which stored events are spread, up to now.
const storedOver = 30 * 24 * time.Hour

// newGrown makes a database whose wallets have that many events in all.
func (b *bench) newGrown(ctx context.Context, database string, events int) (g grown, err error) {
	if _, err := b.rig.postgres.query(ctx, mainDatabase, "CREATE DATABASE "+database); err != nil {
		return g, err
	}
	if g.node, err = b.rig.startNode(ctx, database); err != nil {
		return g, err
	}
	if g.tenant, err = b.newTenant(ctx, g.node, "Few wallets", fewWallets); err != nil {
		return g, err
	}
	return g, b.store(ctx, g.tenant, events)
}

// store gives the tenant's wallets that many events in all, past the server.
func (b *bench) store(ctx context.Context, t *tenant, events int) error {
	first := time.Now().Add(-storedOver).UnixMilli()
	for from := 0; from < events; from += storedAtOnce {
		to := min(from+storedAtOnce, events)
		if _, err := b.rig.postgres.query(ctx, t.database, t.eventsSQL(from, to, fmt.Sprintf("(%d + g * %d / %d)", first, storedOver.Milliseconds(), events))); err != nil {
			return err
		}
		t.stored = to
		fmt.Fprintf(b.progress, "stored %d of %d events\n", to, events)
	}
	_, err := b.rig.postgres.query(ctx, t.database, t.chargedSQL())
	return err
}

// eventsSQL writes events as the server would have, each wallet in turn, in the
// order of time: the indexes grow as they do in life.
func (t *tenant) eventsSQL(from, to int, moment string) string {
	return fmt.Sprintf(`
		INSERT INTO usage_events (app_id, org_id, created_at, tx_id, event_id, wallet_id, key_id, seq, price_number, quantity,
			amount_nanocredits, balance_after)
		SELECT w.app_id, w.org_id, %[1]s, %[2]s, '\x00'::bytea || uuid_send(%[3]s), w.id, '%[4]s', 2 + g / %[5]d, f.price_number, 1,
			%[6]d, %[7]d - %[6]d * (1 + g / %[5]d)::numeric
		FROM generate_series(%[8]d::bigint, %[9]d - 1) g
		JOIN wallets w ON w.app_id = '%[10]s' AND w.identity = '%[11]s' || lpad((g %% %[5]d)::text, %[12]d, '0')
		JOIN features f ON f.app_id = '%[10]s' AND f.key = '%[13]s'
		ORDER BY g`,
		moment, uuidAt(moment, "g"), uuidAt(moment, "g"), t.key, t.wallets,
		int64(cost), int64(deposit), from, to, t.app, identityPrefix, identityDigits, featureKey)
}

// chargedSQL brings wallets and balances to where the stored events leave them.
func (t *tenant) chargedSQL() string {
	each := t.stored / t.wallets
	return fmt.Sprintf(`
		BEGIN;
		UPDATE wallets SET version = version + 1, last_seq = last_seq + %[2]d, charged = true WHERE app_id = '%[1]s';
		UPDATE balances SET amount_nanocredits = amount_nanocredits - %[3]d WHERE app_id = '%[1]s';
		COMMIT`, t.app, each, int64(each)*cost)
}
