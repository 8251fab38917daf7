package storetest

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/jackc/pgx/v5"

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
	OnConnection(tb, url, func(ctx context.Context, conn *pgx.Conn) error {
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
