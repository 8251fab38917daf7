package ledger

import (
	"encoding/json"
	"fmt"

	"purser/billing"
	"purser/metering"
	"purser/store/internal/pg"
)

// storedTerms is how the lists of a plan or a subscription are kept. The names
// are for ever: rows are written once and read for years.
type storedTerms struct {
	Limits      []storedLimit      `json:"limits,omitempty"`
	Multipliers []storedMultiplier `json:"multipliers,omitempty"`
	Grants      []StoredGrant      `json:"grants,omitempty"`
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

// StoredGrant is a grant as it is kept.
type StoredGrant struct {
	CreditID  string `json:"creditId"`
	CreditKey string `json:"creditKey"`
	Amount    string `json:"amountNanocredits"` // in text: no reader makes a float of it
}

// EncodeTerms is the stored form of lists.
func EncodeTerms(terms metering.Terms, grants []billing.Grant) ([]byte, error) {
	var stored storedTerms
	for _, l := range terms.Limits {
		stored.Limits = append(stored.Limits, storedLimit{l.FeatureID.String(), l.FeatureKey, l.Limit, string(l.Period), string(l.Overage)})
	}
	for _, m := range terms.Multipliers {
		stored.Multipliers = append(stored.Multipliers, storedMultiplier{m.FeatureID.String(), m.FeatureKey, m.BasisPoints})
	}
	for _, g := range grants {
		stored.Grants = append(stored.Grants, StoredGrant{g.CreditID.String(), g.CreditKey, g.Amount.String()})
	}
	return json.Marshal(stored)
}

// DecodeTerms undoes EncodeTerms.
func DecodeTerms(text []byte) (terms metering.Terms, grants []billing.Grant, err error) {
	var stored storedTerms
	if err := json.Unmarshal(text, &stored); err != nil {
		return terms, nil, fmt.Errorf("store: terms: %w", err)
	}
	for _, l := range stored.Limits {
		id, err := pg.ParseUUID(l.FeatureID)
		if err != nil {
			return terms, nil, fmt.Errorf("store: terms: %w", err)
		}
		terms.Limits = append(terms.Limits, metering.Limit{
			FeatureID: id, FeatureKey: l.FeatureKey, Limit: l.Limit,
			Period: metering.LimitPeriod(l.Period), Overage: metering.Overage(l.Overage),
		})
	}
	for _, m := range stored.Multipliers {
		id, err := pg.ParseUUID(m.FeatureID)
		if err != nil {
			return terms, nil, fmt.Errorf("store: terms: %w", err)
		}
		terms.Multipliers = append(terms.Multipliers, metering.Multiplier{FeatureID: id, FeatureKey: m.FeatureKey, BasisPoints: m.BasisPoints})
	}
	for _, g := range stored.Grants {
		id, err := pg.ParseUUID(g.CreditID)
		amount, ok := metering.ParseAmount(g.Amount)
		if err != nil || !ok {
			return terms, nil, fmt.Errorf("store: terms: a grant is malformed")
		}
		grants = append(grants, billing.Grant{CreditID: id, CreditKey: g.CreditKey, Amount: amount})
	}
	return terms, grants, nil
}
