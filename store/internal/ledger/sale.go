package ledger

import (
	"encoding/json"
	"fmt"

	"purser/billing"
	"purser/metering"
	"purser/store/internal/pg"
)

// storedSale are the parts of terms that the engine does not read. The JSON names are
// permanent, like those of storedTerms.
type storedSale struct {
	PlanID        string        `json:"planId"`
	PlanKey       string        `json:"planKey"`
	AmountCents   int64         `json:"amountCents"`
	Currency      string        `json:"currency"`
	Interval      string        `json:"interval"`
	PriceID       string        `json:"priceId,omitempty"`
	TopupsEnabled bool          `json:"topupsEnabled"`
	Grants        []StoredGrant `json:"grants,omitempty"`
}

// frozenTerms are complete terms, stored where the engine does not read them.
type frozenTerms struct {
	Lists json.RawMessage `json:"lists"`
	Sale  json.RawMessage `json:"sale"`
}

// EncodeSale encodes the two parts of terms: the engine's lists and the sale.
func EncodeSale(t billing.Terms) (lists, sale []byte, err error) {
	if lists, err = EncodeTerms(t.Metering(), nil); err != nil {
		return nil, nil, err
	}
	stored := storedSale{
		PlanID: t.PlanID.String(), PlanKey: t.PlanKey, AmountCents: t.AmountCents, Currency: t.Currency,
		Interval: string(t.Interval), PriceID: t.PriceID, TopupsEnabled: t.TopupsEnabled,
	}
	for _, g := range t.Grants {
		stored.Grants = append(stored.Grants, StoredGrant{CreditID: g.CreditID.String(), CreditKey: g.CreditKey, Amount: g.Amount.String()})
	}
	sale, err = json.Marshal(stored)
	return lists, sale, err
}

// DecodeSale undoes EncodeSale. A subscription from before sales were stored has none.
func DecodeSale(lists, sale []byte) (t billing.Terms, err error) {
	engine, _, err := DecodeTerms(lists)
	if err != nil {
		return t, err
	}
	t.Limits, t.Multipliers = engine.Limits, engine.Multipliers
	if sale == nil {
		return t, nil
	}
	var stored storedSale
	if err := json.Unmarshal(sale, &stored); err != nil {
		return t, fmt.Errorf("store: sale: %w", err)
	}
	if t.PlanID, err = pg.ParseUUID(stored.PlanID); err != nil {
		return t, fmt.Errorf("store: sale: %w", err)
	}
	t.PlanKey, t.PriceID, t.TopupsEnabled = stored.PlanKey, stored.PriceID, stored.TopupsEnabled
	t.Price = billing.Price{AmountCents: stored.AmountCents, Currency: stored.Currency, Interval: billing.Interval(stored.Interval)}
	for _, g := range stored.Grants {
		id, err := pg.ParseUUID(g.CreditID)
		amount, ok := metering.ParseAmount(g.Amount)
		if err != nil || !ok {
			return t, fmt.Errorf("store: sale: a grant is malformed")
		}
		t.Grants = append(t.Grants, billing.Grant{CreditID: id, CreditKey: g.CreditKey, Amount: amount})
	}
	return t, nil
}

func FreezeTerms(t billing.Terms) ([]byte, error) {
	lists, sale, err := EncodeSale(t)
	if err != nil {
		return nil, err
	}
	return json.Marshal(frozenTerms{lists, sale})
}

func ThawTerms(text []byte) (billing.Terms, error) {
	var frozen frozenTerms
	if err := json.Unmarshal(text, &frozen); err != nil {
		return billing.Terms{}, fmt.Errorf("store: frozen terms: %w", err)
	}
	return DecodeSale(frozen.Lists, frozen.Sale)
}
