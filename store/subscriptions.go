package store

import (
	"context"
	"encoding/json"

	"purser/fault"
	"purser/metering"
)

var upsertSubscription = declare("upsert subscription", `
	INSERT INTO subscriptions (app_id, id, org_id, wallet_id, status, period_start, period_end, terms)
	VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
	ON CONFLICT (app_id, id) DO UPDATE SET
		status = excluded.status, period_start = excluded.period_start, period_end = excluded.period_end, terms = excluded.terms`)

var touchWallet = declare("touch wallet", `
	UPDATE wallets SET version = version + 1 WHERE app_id = $1 AND id = $2`)

// PutSubscription keeps what the engine needs of an identity's subscription. It
// holds the wallet's lock and moves its version, so the next use, on whichever
// node, is decided by it.
func (a App) PutSubscription(ctx context.Context, identity string, s metering.Subscription) error {
	terms, err := json.Marshal((*termsColumn)(&s.Terms))
	if err != nil {
		return err
	}
	defer a.walletChanged(identity)
	return a.transact(ctx, func(ctx context.Context, tx appTx) error {
		locked, err := tx.lockWallets(ctx, identity)
		if err != nil {
			return err
		}
		if len(locked) == 0 {
			return fault.New(fault.WalletNotFound)
		}
		err = tx.exec(ctx, upsertSubscription, 1, s.ID, a.scope.OrgID, locked[0].ID, s.Status, s.Period.Start, s.Period.End, terms)
		if err != nil {
			return err
		}
		return tx.exec(ctx, touchWallet, 1, locked[0].ID)
	})
}

// termsColumn is how terms are kept: as JSON with short, stable names.
type termsColumn metering.Terms

type storedTerms struct {
	Limits      []storedLimit      `json:"limits,omitempty"`
	Multipliers []storedMultiplier `json:"multipliers,omitempty"`
}

type storedLimit struct {
	FeatureID  string `json:"featureId"`
	FeatureKey string `json:"featureKey"`
	Limit      int64  `json:"limit"`
	Period     string `json:"period"`
	Overage    string `json:"overage"`
}

type storedMultiplier struct {
	FeatureID   string `json:"featureId"`
	FeatureKey  string `json:"featureKey"`
	BasisPoints int64  `json:"basisPoints"`
}

// MarshalJSON writes the stored form.
func (t *termsColumn) MarshalJSON() ([]byte, error) {
	var stored storedTerms
	for _, l := range t.Limits {
		stored.Limits = append(stored.Limits, storedLimit{uuidOf(l.FeatureID).String(), l.FeatureKey, l.Limit, string(l.Period), string(l.Overage)})
	}
	for _, m := range t.Multipliers {
		stored.Multipliers = append(stored.Multipliers, storedMultiplier{uuidOf(m.FeatureID).String(), m.FeatureKey, m.BasisPoints})
	}
	return json.Marshal(stored)
}

// UnmarshalJSON reads the stored form.
func (t *termsColumn) UnmarshalJSON(text []byte) error {
	var stored storedTerms
	if err := json.Unmarshal(text, &stored); err != nil {
		return err
	}
	*t = termsColumn{}
	for _, l := range stored.Limits {
		id, err := parseUUID(l.FeatureID)
		if err != nil {
			return err
		}
		t.Limits = append(t.Limits, metering.Limit{
			FeatureID: id, FeatureKey: l.FeatureKey, Limit: l.Limit,
			Period: metering.LimitPeriod(l.Period), Overage: metering.Overage(l.Overage),
		})
	}
	for _, m := range stored.Multipliers {
		id, err := parseUUID(m.FeatureID)
		if err != nil {
			return err
		}
		t.Multipliers = append(t.Multipliers, metering.Multiplier{FeatureID: id, FeatureKey: m.FeatureKey, BasisPoints: m.BasisPoints})
	}
	return nil
}
