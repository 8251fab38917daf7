package monthly

import (
	"encoding/json"

	"purser/metering"
)

// Entry is a line of a file of entries: one change of a balance with the state after it, in
// the words of the API. It has no identity and no properties, which an erasure removes.
type Entry struct {
	Wallet         string             `json:"walletId"`
	Seq            int64              `json:"seq"`
	ID             string             `json:"id"`
	Kind           metering.EntryKind `json:"kind"`
	CreditKey      string             `json:"creditKey"`
	Delta          string             `json:"deltaNanocredits"` // signed
	BalanceAfter   string             `json:"balanceAfterNanocredits"`
	DebtAfter      string             `json:"debtAfterNanocredits,omitzero"`
	CreatedAt      int64              `json:"createdAt"`
	IdempotencyKey *string            `json:"idempotencyKey,omitzero"`
	PaymentKind    string             `json:"paymentKind,omitzero"`
	PaymentID      string             `json:"paymentId,omitzero"`
	Event          *Event             `json:"event,omitzero"` // of a charge
}

// Event is what a charge was made for.
type Event struct {
	ID               string     `json:"id"`
	Feature          string     `json:"feature"`
	FeatureRevision  int64      `json:"featureRevision"`
	PricingMode      string     `json:"pricingMode"`
	Cost             string     `json:"costNanocredits"`
	QuantityPerUnit  int64      `json:"quantityPerUnit"`
	Quantity         int64      `json:"quantity"`
	BasisPoints      *int64     `json:"basisPoints,omitzero"` // none for the list price
	Quoted           string     `json:"quotedNanocredits,omitzero"`
	KeyID            string     `json:"keyId"`
	OccurredAt       *int64     `json:"occurredAt,omitzero"` // none for createdAt
	EntityID         string     `json:"entityId,omitzero"`
	PeriodStart      *int64     `json:"periodStart,omitzero"`
	PeriodEnd        *int64     `json:"periodEnd,omitzero"`
	DeduplicatedFrom string     `json:"deduplicatedFrom,omitzero"`
	Allowance        *Allowance `json:"allowance,omitzero"`
}

// Allowance is the plan's limit that an event was counted against.
type Allowance struct {
	Limit       int64  `json:"limit"`
	Used        int64  `json:"used"` // before the event
	PeriodStart int64  `json:"periodStart"`
	PeriodEnd   int64  `json:"periodEnd"`
	Overage     string `json:"overage"`
}

// Closing is a line of a file of wallets: the state of a wallet at the end of a month.
type Closing struct {
	Wallet   string    `json:"walletId"`
	Entries  int64     `json:"entries"` // of this month
	Through  int64     `json:"through"` // the number of the wallet's last entry so far
	Chain    string    `json:"chain"`   // SHA-256 over the chain before and each line, in hex
	Balances []Balance `json:"balances"`
}

// Balance is the balance of one credit.
type Balance struct {
	CreditKey string `json:"creditKey"`
	Amount    string `json:"amountNanocredits"`
	Debt      string `json:"debtNanocredits,omitzero"`
}

// Line is the entry as a line of its file, without the line break.
func (e Entry) Line() ([]byte, error) { return json.Marshal(e) }

// Line is the closing as a line of its file, without the line break.
func (c Closing) Line() ([]byte, error) { return json.Marshal(c) }
