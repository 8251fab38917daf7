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
	// few enough to end soon after a Ctrl-C.
	storedAtOnce = 500_000
	// storedOver is the time over which stored events are spread, up to now.
	storedOver = 100 * 24 * time.Hour
	// entitiesOneIn is how few events name an entity and have properties, and manyValues
	// how many different values those have: more than are kept on a day.
	entitiesOneIn = 10
	manyValues    = 5_000
	fewValues     = 20

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
	if err := g.tenant.createFeatures(ctx, g.node); err != nil {
		return g, err
	}
	fmt.Fprintf(b.progress, "making %d more wallets…\n", b.options.many)
	wallets := g.tenant.walletsSQL(fewWallets, fewWallets+b.options.many, time.Now().Add(-2*storedOver-2*time.Hour), storedOver)
	if _, err := b.harness.postgres.query(ctx, database, wallets); err != nil {
		return g, err
	}
	half := events / 2
	if err := b.storeTogether(ctx, share{g.tenant, 0, fewWallets, events - half}, share{g.tenant, fewWallets, b.options.many, half},
		share{g.quiet, 0, quietWallets, quietEvents}); err != nil {
		return g, err
	}
	_, err = b.harness.postgres.query(ctx, database, g.tenant.addedUpSQL()+g.quiet.addedUpSQL())
	return g, err
}

// addedUpSQL has the server take the stored events for added up: it would add up millions
// of them beside the measurements.
func (t *tenant) addedUpSQL() string {
	return fmt.Sprintf(`INSERT INTO usage_progress (app_id, org_id, added, until) SELECT '%s', '%s', ms, ms
		FROM (SELECT floor(extract(epoch FROM now()) * 1000)::bigint AS ms) now
		ON CONFLICT (app_id) DO UPDATE SET added = excluded.added, until = excluded.until;`, t.app, t.org)
}

// share is how many of the stored events some wallets of a tenant have in all, each in turn.
type share struct {
	*tenant
	first, wallets int
	events         int
}

// store gives the tenant's wallets that many events in all, past the server.
func (b *bench) store(ctx context.Context, t *tenant, events int) error {
	return b.storeTogether(ctx, share{t, 0, t.wallets, events})
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
		s.stored += s.events
		if _, err := b.harness.postgres.query(ctx, s.database, s.chargedSQL()); err != nil {
			return err
		}
	}
	return nil
}

// insertEventsSQL writes events as the server would have, in the order of time: the
// indexes grow as they do in life.
func insertEventsSQL(rows []string) string {
	return fmt.Sprintf(`
		BEGIN;
		CREATE TEMPORARY TABLE stored ON COMMIT DROP AS
		%[1]s;
		INSERT INTO usage_events (app_id, created_at, tx_id, event_id, wallet_id, key_id, seq, price_number, quantity,
			amount_nanocredits, balance_after, entity_id)
		SELECT app_id, at, tx_id, event_id, wallet_id, key_id, seq, price_number, 1, amount, balance,
			CASE WHEN g %% %[2]d = 0 THEN 'order-' || g / %[2]d %% %[3]d END
		FROM stored ORDER BY at;
		INSERT INTO event_properties (app_id, wallet_id, seq, org_id, properties)
		SELECT app_id, wallet_id, seq, org_id, jsonb_build_object('model', 'model-' || g / %[2]d %% %[4]d, 'session', 'session-' || g / %[2]d %% %[3]d)
		FROM stored WHERE g %% %[2]d = 0 ORDER BY at;
		COMMIT;`, strings.Join(rows, " UNION ALL "), entitiesOneIn, manyValues, fewValues)
}

// eventsSQL selects the rows of events. Half are of one feature, and the others of the
// few that are used.
func (s share) eventsSQL(from, to int, moment string) string {
	return fmt.Sprintf(`
		SELECT g, w.app_id, w.org_id, %[1]s AS at, %[2]s AS tx_id, '\x00'::bytea || uuid_send(%[3]s) AS event_id, w.id AS wallet_id, '%[4]s'::uuid AS key_id,
			2 + g / %[5]d AS seq, f.numbers[1 + greatest(0, (g / %[5]d + g) %% (2 * %[14]d) - %[14]d) %% cardinality(f.numbers)] AS price_number,
			%[6]d::numeric AS amount, %[7]d - %[6]d * (1 + g / %[5]d)::numeric AS balance
		FROM generate_series(%[8]d::bigint, %[9]d - 1) g
		JOIN wallets w ON w.app_id = '%[10]s' AND w.identity = '%[11]s' || lpad((%[13]d + g %% %[5]d)::text, %[12]d, '0')
		CROSS JOIN (SELECT array_agg(price_number ORDER BY key) AS numbers FROM features WHERE app_id = '%[10]s' AND key <> '%[15]s') f`,
		moment, uuidAt(moment, "g"), uuidAt(moment, "g"), s.key, s.wallets,
		int64(cost), int64(deposit), from, to, s.app, identityPrefix, identityDigits, s.first, usedFeatures, limitedKey)
}

// usedFeatures are how many features have stored events: the first by their keys.
const usedFeatures = 8

// chargedSQL brings wallets, balances and features to where the stored events leave them.
func (s share) chargedSQL() string {
	return fmt.Sprintf(`
		BEGIN;
		CREATE TEMPORARY TABLE charged ON COMMIT DROP AS
		SELECT id, greatest(0, (%[3]d - substr(identity, length('%[4]s') + 1)::bigint + %[2]d + %[5]d - 1) / %[5]d) AS events
		FROM wallets WHERE app_id = '%[1]s' AND identity >= '%[6]s' AND identity < '%[7]s';
		UPDATE wallets w SET version = version + 1, last_seq = last_seq + c.events, charged = true FROM charged c WHERE w.app_id = '%[1]s' AND w.id = c.id;
		UPDATE balances b SET amount_nanocredits = amount_nanocredits - %[8]d * c.events FROM charged c WHERE b.app_id = '%[1]s' AND b.wallet_id = c.id;
		UPDATE features SET deduplication_locked = true WHERE app_id = '%[1]s' AND key <> '%[9]s';
		COMMIT`, s.app, s.first, s.events, identityPrefix, s.wallets, identityOf(s.first), identityOf(s.first+s.wallets), int64(cost), unusedKey)
}
