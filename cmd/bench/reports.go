package main

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"purser/store"
	"purser/store/rollups"
	"purser/tenancy"
)

const (
	moreFeatures = 50 // beside the one of the load; most without usage
	auditEntries = 200
	grantedOneIn = 40_000
	keptDenials  = 200_000
	figureDays   = 59 // before today: an overview compares 30 days with the 30 before
	settleRuns   = 3  // the first adds the events, the second makes some days final, the last adds those up
)

// unusedKey is a feature without usage.
const unusedKey = "feature-49"

// createFeatures makes a long catalog. "calls" and "exports" are the first by key.
func (t *tenant) createFeatures(ctx context.Context, n *node) error {
	for i := range moreFeatures {
		feature := map[string]any{"key": fmt.Sprintf("feature-%02d", i), "name": fmt.Sprintf("Feature %d", i), "unit": "call",
			"creditKey": "credits", "costNanocredits": fmt.Sprint(cost)}
		if err := t.post(ctx, n, "/v1/features", feature, nil); err != nil {
			return err
		}
	}
	return nil
}

// fillReports creates what the application's pages show beside wallets and events:
// through the server where that is fast, otherwise in SQL.
func (b *bench) fillReports(ctx context.Context, g grown, client *browser) error {
	t := g.tenant
	for i := range auditEntries { // each is a row of the audit log
		if _, err := client.send(ctx, client.org+"/settings", url.Values{"name": {fmt.Sprintf("%s %d", orgName, i)}}); err != nil {
			return err
		}
	}
	// Activity of earlier days is copied from what the server counts during this load.
	// It flushes that when a page is read.
	if _, err := b.grown(ctx, g); err != nil {
		return err
	}
	if _, _, err := client.get(ctx, client.app); err != nil {
		return err
	}
	if _, err := b.harness.postgres.query(ctx, t.database, t.customerRowsSQL()+t.figuresSQL()+g.quiet.figuresSQL()); err != nil {
		return err
	}
	return b.addUpUsage(ctx, t, g.quiet)
}

// addUpUsage makes the usage statistics of the stored events, which are older than those
// that the server has added up meanwhile.
func (b *bench) addUpUsage(ctx context.Context, tenants ...*tenant) error {
	fmt.Fprintln(b.progress, "adding up usage…")
	for _, t := range tenants {
		if _, err := b.harness.postgres.query(ctx, t.database, t.forgetUsageSQL()); err != nil {
			return err
		}
	}
	db, err := store.Open(ctx, b.harness.postgres.server.URL(tenants[0].database), store.Options{})
	if err != nil {
		return err
	}
	defer db.Close()
	for _, t := range tenants {
		app := db.Rollups(tenancy.Scope{OrgID: t.org, AppID: t.app})
		for range settleRuns {
			if _, err := app.RollUp(ctx, rollups.Alone); err != nil {
				return err
			}
		}
		if err := app.RecordLiability(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (t *tenant) forgetUsageSQL() (sql string) {
	for _, table := range []string{"usage_progress", "usage_hours", "usage_totals", "usage_total_days", "usage_months", "usage_dimensions", "usage_values", "usage_value_days", "revenue_days"} {
		sql += fmt.Sprintf("DELETE FROM %s WHERE app_id = '%s';", table, t.app)
	}
	return "BEGIN;" + sql + "COMMIT"
}

// customerRowsSQL gives a fourth of the wallets a subscription, a tenth a checkout that was
// left, one in a thousand a debt, and very few a grant. The wallets of the load have only a subscription.
func (t *tenant) customerRowsSQL() string {
	return fmt.Sprintf(`
		SET session_replication_role = replica;
		BEGIN;
		CREATE TEMPORARY TABLE chosen ON COMMIT DROP AS
		SELECT w.app_id, w.org_id, w.id, w.created_at, w.last_seq + 1 AS seq, b.amount_nanocredits AS held, substr(w.identity, length('%[2]s') + 1)::bigint AS n
		FROM wallets w JOIN balances b ON b.app_id = w.app_id AND b.wallet_id = w.id
		WHERE w.app_id = '%[1]s' AND w.identity >= '%[3]s';

		INSERT INTO subscriptions (app_id, id, org_id, wallet_id, status, period_start, period_end, terms, plan_id, created_at, ended_at)
		SELECT c.app_id, c.id, c.org_id, c.id, s.status, c.created_at, c.created_at + 31 * %[6]d::bigint, '{}', p.id, c.created_at,
			CASE s.status WHEN 'canceled' THEN c.created_at + 1 END
		FROM chosen c
		JOIN plans p ON p.app_id = c.app_id
		CROSS JOIN LATERAL (SELECT CASE WHEN n %% 40 = 0 THEN 'canceled' WHEN n %% 400 = 4 THEN 'past_due' WHEN n %% 40000 = 1208 THEN 'paused' ELSE 'active' END AS status) s
		WHERE c.n %% 4 = 0 ORDER BY c.id;

		INSERT INTO topups (app_id, id, org_id, wallet_id, credit_id, amount_nanocredits, amount_cents, currency, connection_id, customer_id,
			live, expires_at, status, created_at)
		SELECT app_id, id, org_id, id, '%[4]s', %[5]d, 500, 'eur', app_id, '', false, created_at + %[6]d, 'expired', created_at
		FROM chosen WHERE n %% 20 = 0 ORDER BY id;
		INSERT INTO subscription_changes (app_id, id, org_id, wallet_id, kind, terms, state, requested_at)
		SELECT app_id, id, org_id, id, 'checkout', '{"sale": {"planKey": "%[9]s", "amountCents": 2900, "currency": "eur"}}', 'dropped', created_at FROM chosen WHERE n %% 20 = 10 ORDER BY id;

		INSERT INTO journal (app_id, org_id, id, wallet_id, seq, kind, credit_id, delta_nanocredits, balance_after, debt_after, created_at)
		SELECT app_id, org_id, %[8]s, id, seq, 'refund', '%[4]s', -held - %[7]d, 0, %[7]d, created_at FROM chosen WHERE n %% 1000 = 1 ORDER BY id;
		UPDATE balances b SET amount_nanocredits = 0, debt_nanocredits = %[7]d
		FROM chosen c WHERE b.app_id = c.app_id AND b.wallet_id = c.id AND c.n %% 1000 = 1;
		UPDATE wallets w SET version = version + 1, last_seq = c.seq FROM chosen c WHERE w.app_id = c.app_id AND w.id = c.id AND c.n %% 1000 = 1;

		INSERT INTO journal (app_id, org_id, id, wallet_id, seq, kind, credit_id, delta_nanocredits, balance_after, debt_after, created_at)
		SELECT app_id, org_id, %[8]s, id, seq, 'grant', '%[4]s', %[7]d, held + %[7]d, 0, created_at FROM chosen WHERE n %% %[10]d = 1003 ORDER BY id;
		UPDATE balances b SET amount_nanocredits = amount_nanocredits + %[7]d
		FROM chosen c WHERE b.app_id = c.app_id AND b.wallet_id = c.id AND c.n %% %[10]d = 1003;
		UPDATE wallets w SET version = version + 1, last_seq = c.seq FROM chosen c WHERE w.app_id = c.app_id AND w.id = c.id AND c.n %% %[10]d = 1003;
		INSERT INTO debtors (app_id, wallet_id, credit_id, org_id) SELECT app_id, id, '%[4]s', org_id FROM chosen WHERE n %% 1000 = 1 ORDER BY id;
		CREATE TEMPORARY TABLE paying ON COMMIT DROP AS
		SELECT c.*, m.at FROM chosen c
		CROSS JOIN LATERAL (SELECT %[11]d - (c.n * 7919 %% 1000) * %[12]d / 1000 AS at) m
		WHERE c.n %% 20 = 7 ORDER BY m.at;
		INSERT INTO journal (app_id, org_id, id, wallet_id, seq, kind, credit_id, delta_nanocredits, balance_after, debt_after, idempotency_key, created_at)
		SELECT app_id, org_id, %[13]s, id, seq, 'deposit', '%[4]s', %[7]d, held + %[7]d, 0, 'again-' || n, at FROM paying;
		UPDATE balances b SET amount_nanocredits = amount_nanocredits + %[7]d FROM paying c WHERE b.app_id = c.app_id AND b.wallet_id = c.id;
		UPDATE wallets w SET version = version + 1, last_seq = c.seq FROM paying c WHERE w.app_id = c.app_id AND w.id = c.id;
		INSERT INTO provider_payments (app_id, source_kind, source_id, org_id, wallet_id, amount_cents, currency, free, created_at)
		SELECT app_id, 'session', 'cs_' || n, org_id, id, 500 + n %% 700, 'eur', false, at FROM paying;
		INSERT INTO denial_records (app_id, id, org_id, request_id, key_id, at, identity, feature_id, credit_id, reason, gate, event_id, quantity, billable,
			pricing_mode, cost_nanocredits, quantity_per_unit, basis_points, amount_nanocredits, balance_nanocredits, debt_nanocredits)
		SELECT '%[1]s', %[14]s, '%[15]s', %[14]s, '%[16]s', d.at, '%[2]s' || lpad((g %% 20000)::text, %[17]d, '0'), f.ids[1 + g %% cardinality(f.ids)], '%[4]s',
			'insufficient_balance', 'balance', g::text, 1, 1, 'fixed', %[7]d, 1, 10000, %[7]d, 0, 0
		FROM generate_series(0, %[18]d - 1) g
		CROSS JOIN LATERAL (SELECT %[11]d - (%[18]d - g) * 10000::bigint AS at) d
		CROSS JOIN (SELECT array_agg(id ORDER BY key) AS ids FROM features WHERE app_id = '%[1]s' AND key < '%[19]s') f;
		COMMIT;`,
		t.app, identityPrefix, identityOf(fewWallets), t.credit, int64(deposit), dayMS, cost, uuidAt("created_at", "n"), planKey, grantedOneIn,
		time.Now().UnixMilli(), storedOver.Milliseconds(), uuidAt("at", "n"), uuidAt("d.at", "g"), t.org, t.key, identityDigits, keptDenials, unusedKey)
}

const (
	hourMS = 3_600_000
	dayMS  = 24 * hourMS
)

// figuresSQL counts what is stored, in the tables where the server counts what it
// is asked. Who was active repeats what it has counted today. Denials and the latest
// requests leave no record, so they are made up: as many as there may well be.
func (t *tenant) figuresSQL() string {
	return fmt.Sprintf(`
		BEGIN;
		INSERT INTO usage_days (app_id, day, feature_id, credit_id, org_id, accepted, deduplicated, charged_nanocredits)
		SELECT e.app_id, e.created_at - e.created_at %% %[2]d, p.feature_id, p.credit_id, p.org_id, count(*), 0, sum(e.amount_nanocredits)
		FROM usage_events e JOIN prices p ON p.app_id = e.app_id AND p.number = e.price_number
		WHERE e.app_id = '%[1]s' GROUP BY 1, 2, 3, 4, 5
		ON CONFLICT (app_id, day, feature_id, credit_id) DO UPDATE SET accepted = excluded.accepted, charged_nanocredits = excluded.charged_nanocredits;

		INSERT INTO activity_hours (app_id, hour, org_id, uses, denials, requests, failures, oldest_tx, newest_tx)
		SELECT app_id, created_at - created_at %% %[3]d, '%[5]s'::uuid, count(*), 0, count(*), 0, min(tx_id::text)::uuid, max(tx_id::text)::uuid
		FROM usage_events WHERE app_id = '%[1]s' GROUP BY 1, 2
		ON CONFLICT (app_id, hour) DO UPDATE SET uses = excluded.uses, oldest_tx = excluded.oldest_tx, newest_tx = excluded.newest_tx;

		INSERT INTO entry_days (app_id, day, kind, credit_id, org_id, entries, came_nanocredits, taken_nanocredits)
		SELECT app_id, created_at - created_at %% %[2]d, kind, credit_id, org_id, count(*),
			coalesce(sum(delta_nanocredits) FILTER (WHERE delta_nanocredits > 0), 0), coalesce(-sum(delta_nanocredits) FILTER (WHERE delta_nanocredits < 0), 0)
		FROM journal WHERE app_id = '%[1]s' GROUP BY 1, 2, 3, 4, 5
		ON CONFLICT (app_id, day, kind, credit_id) DO NOTHING;

		INSERT INTO active_days (app_id, day, org_id, sketch)
		SELECT app_id, day - n * %[2]d::bigint, org_id, sketch FROM active_days CROSS JOIN generate_series(1, %[4]d) n WHERE app_id = '%[1]s'
		ON CONFLICT (app_id, day) DO NOTHING;

		INSERT INTO denial_days (app_id, day, feature_id, reason, org_id, uses, checks)
		SELECT d.app_id, d.day, f.id, r.reason, d.org_id, 7, 3
		FROM active_days d JOIN features f ON f.app_id = d.app_id
		CROSS JOIN (VALUES ('insufficient_balance'), ('feature_limit_reached'), ('payment_hold')) r (reason)
		WHERE d.app_id = '%[1]s';

		INSERT INTO request_rings (app_id, org_id, written) VALUES ('%[1]s', '%[5]s', %[6]d)
		ON CONFLICT (app_id) DO UPDATE SET written = request_rings.written + excluded.written;
		INSERT INTO recent_requests (app_id, slot, org_id, id, at, method, route, status, error, took_us, key_id)
		SELECT '%[1]s', n, '%[5]s', %[7]s, a.at, 'POST', '/v1/events',
			CASE n %% 4 WHEN 0 THEN 402 ELSE 201 END, CASE n %% 4 WHEN 0 THEN 'insufficient_balance' END, 900, '%[8]s'
		FROM generate_series(0, %[6]d - 1) n
		CROSS JOIN LATERAL (SELECT (extract(epoch FROM now()) * 1000)::bigint - 60000 * (1 + n) AS at) a
		ON CONFLICT (app_id, slot) DO NOTHING;
		INSERT INTO request_failures (app_id, id, org_id, at, method, route, status, error, took_us, key_id, identity, feature)
		SELECT app_id, id, org_id, at, method, route, status, error, took_us, key_id, 'bench', 'messages'
		FROM recent_requests WHERE app_id = '%[1]s' AND status >= 400
		ON CONFLICT DO NOTHING;
		COMMIT;`,
		t.app, dayMS, hourMS, figureDays, t.org, ringSize, uuidAt("a.at", "n"), t.key)
}

// ringSize is how many requests of an application are kept.
const ringSize = 2_000
