package storetest

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

	"purser/billing"
	"purser/ids"
	"purser/metering"
	"purser/tenancy"
)

// PutSubscription gives an identity's wallet a subscription without a plan and without
// a payment. It moves the wallet's version, so every node decides by it at once. Terms
// may have limits only.
func PutSubscription(tb testing.TB, url string, scope tenancy.Scope, identity string, s metering.Subscription) {
	tb.Helper()
	type limit struct {
		FeatureID  string `json:"featureId"`
		FeatureKey string `json:"featureKey"`
		Limit      int64  `json:"limit"`
		Period     string `json:"period"`
		Overage    string `json:"overage"`
	}
	var terms struct {
		Limits []limit `json:"limits,omitempty"`
	}
	var features []ids.ID
	for _, l := range s.Terms.Limits {
		terms.Limits = append(terms.Limits, limit{l.FeatureID.String(), l.FeatureKey, l.Limit, string(l.Period), string(l.Overage)})
		features = append(features, l.FeatureID)
	}
	if len(s.Terms.Multipliers) > 0 {
		tb.Fatal("storetest: a subscription with multipliers cannot be put")
	}
	encoded, err := json.Marshal(terms)
	if err != nil {
		tb.Fatal(err)
	}
	onConnection(tb, url, func(ctx context.Context, conn *pgx.Conn) error {
		return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			var wallet ids.ID
			err := tx.QueryRow(ctx, `
				UPDATE wallets SET version = version + 1 WHERE app_id = $1 AND identity = $2 RETURNING id`, scope.AppID, identity).Scan(&wallet)
			if err != nil {
				return err
			}
			_, err = tx.Exec(ctx, `
				INSERT INTO subscriptions (app_id, id, org_id, wallet_id, status, period_start, period_end, terms)
				VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
				scope.AppID, s.ID, scope.OrgID, wallet, string(s.Status), s.Period.Start, s.Period.End, encoded)
			if err != nil {
				return err
			}
			_, err = tx.Exec(ctx, `
				INSERT INTO feature_references (app_id, org_id, holder_id, feature_id, multiplied)
				SELECT $1, $2, $3, feature_id, false FROM unnest($4::uuid[]) AS t (feature_id)`, scope.AppID, scope.OrgID, s.ID, features)
			return err
		})
	})
}

// TopUp reads where a purchase of credits was sold and how far it has come.
func TopUp(tb testing.TB, url string, scope tenancy.Scope, id ids.ID) (t billing.TopUp) {
	tb.Helper()
	onConnection(tb, url, func(ctx context.Context, conn *pgx.Conn) error {
		return conn.QueryRow(ctx, `SELECT id, connection_id, status FROM topups WHERE app_id = $1 AND id = $2`, scope.AppID, id).
			Scan(&t.ID, &t.ConnectionID, &t.Status)
	})
	return t
}

// MoveReplacement changes when a connection, named as in its webhook address, was replaced.
func MoveReplacement(tb testing.TB, url string, scope tenancy.Scope, connection string, at int64) {
	tb.Helper()
	id, err := ids.Parse("con", connection)
	if err != nil {
		tb.Fatal(err)
	}
	onConnection(tb, url, func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, `UPDATE provider_connections SET replaced_at = $3 WHERE app_id = $1 AND id = $2 AND replaced_at IS NOT NULL`, scope.AppID, id, at)
		return err
	})
}

// WebhookEvents counts the webhooks that were kept.
func WebhookEvents(tb testing.TB, url string, scope tenancy.Scope) (kept int) {
	tb.Helper()
	onConnection(tb, url, func(ctx context.Context, conn *pgx.Conn) error {
		return conn.QueryRow(ctx, `SELECT count(*) FROM webhook_events WHERE app_id = $1`, scope.AppID).Scan(&kept)
	})
	return kept
}

// Payments lists what an identity has paid or was given by a plan, the latest first.
func Payments(tb failer, url string, scope tenancy.Scope, identity string) (list []billing.Payment) {
	tb.Helper()
	onConnection(tb, url, func(ctx context.Context, conn *pgx.Conn) (err error) {
		rows, _ := conn.Query(ctx, `
			SELECT p.source_kind, p.source_id, p.amount_cents, p.currency, coalesce(p.intent_id, ''), coalesce(p.charge_id, ''),
				coalesce(p.plan_id, '00000000-0000-0000-0000-000000000000'), coalesce(p.period_start, 0), coalesce(p.period_end, 0), p.free,
				p.refunded_cents, p.disputed_cents, p.balance_cents
			FROM provider_payments p JOIN wallets w ON w.app_id = p.app_id AND w.id = p.wallet_id
			WHERE p.app_id = $1 AND w.identity = $2 ORDER BY p.created_at DESC, p.source_id`, scope.AppID, identity) // CollectRows returns its error
		list, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (p billing.Payment, err error) {
			err = row.Scan(&p.Source.Kind, &p.Source.ID, &p.AmountCents, &p.Currency, &p.IntentID, &p.ChargeID,
				&p.PlanID, &p.Period.Start, &p.Period.End, &p.Free, &p.RefundedCents, &p.DisputedCents, &p.BalanceCents)
			return p, err
		})
		for i := range list {
			if err == nil {
				err = readCredits(ctx, conn, scope, &list[i])
			}
		}
		return err
	})
	return list
}

func readCredits(ctx context.Context, conn *pgx.Conn, scope tenancy.Scope, p *billing.Payment) error {
	rows, _ := conn.Query(ctx, `
		SELECT p.credit_id, c.key, p.amount_nanocredits::text, p.taken_back_nanocredits::text
		FROM payment_credits p JOIN credits c ON c.app_id = p.app_id AND c.id = p.credit_id
		WHERE p.app_id = $1 AND p.source_kind = $2 AND p.source_id = $3 ORDER BY p.position`, scope.AppID, p.Source.Kind, p.Source.ID) // CollectRows returns its error
	_, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (struct{}, error) {
		var brought billing.Grant
		var amount, takenBack string
		if err := row.Scan(&brought.CreditID, &brought.CreditKey, &amount, &takenBack); err != nil {
			return struct{}{}, err
		}
		taken, isAmount := brought, true
		if brought.Amount, isAmount = metering.ParseAmount(amount); !isAmount {
			return struct{}{}, fmt.Errorf("%s is not an amount", amount)
		}
		if taken.Amount, isAmount = metering.ParseAmount(takenBack); !isAmount {
			return struct{}{}, fmt.Errorf("%s is not an amount", takenBack)
		}
		p.Credits = append(p.Credits, brought)
		if taken.Amount > 0 {
			p.TakenBack = append(p.TakenBack, taken)
		}
		return struct{}{}, nil
	})
	return err
}
