package payments

import (
	"encoding/json"
	"fmt"

	"purser/billing"
	"purser/store/internal/ledger"
)

// waitingChange is a scheduled or pending change as stored in a subscription's row.
type waitingChange struct {
	Terms       json.RawMessage `json:"terms"`
	EffectiveAt int64           `json:"effectiveAt,omitempty"`
	Billed      bool            `json:"billed,omitempty"`
	ExpiresAt   int64           `json:"expiresAt,omitempty"`
	PaymentURL  string          `json:"paymentUrl,omitempty"`
}

func encodeScheduled(c *billing.ScheduledChange) ([]byte, error) {
	if c == nil {
		return nil, nil
	}
	terms, err := ledger.FreezeTerms(c.Target)
	if err != nil {
		return nil, err
	}
	return json.Marshal(waitingChange{Terms: terms, EffectiveAt: c.EffectiveAt, Billed: c.Billed})
}

func encodePending(c *billing.PendingChange) ([]byte, error) {
	if c == nil {
		return nil, nil
	}
	terms, err := ledger.FreezeTerms(c.Target)
	if err != nil {
		return nil, err
	}
	return json.Marshal(waitingChange{Terms: terms, ExpiresAt: c.ExpiresAt, PaymentURL: c.PaymentURL})
}

func decodeScheduled(text []byte) (*billing.ScheduledChange, error) {
	waiting, terms, err := decodeWaiting(text)
	if err != nil || text == nil {
		return nil, err
	}
	return &billing.ScheduledChange{Target: terms, EffectiveAt: waiting.EffectiveAt, Billed: waiting.Billed}, nil
}

func decodePending(text []byte) (*billing.PendingChange, error) {
	waiting, terms, err := decodeWaiting(text)
	if err != nil || text == nil {
		return nil, err
	}
	return &billing.PendingChange{Target: terms, ExpiresAt: waiting.ExpiresAt, PaymentURL: waiting.PaymentURL}, nil
}

func decodeWaiting(text []byte) (waiting waitingChange, terms billing.Terms, err error) {
	if text == nil {
		return waiting, terms, nil
	}
	if err := json.Unmarshal(text, &waiting); err != nil {
		return waiting, terms, fmt.Errorf("store: waiting change: %w", err)
	}
	terms, err = ledger.ThawTerms(waiting.Terms)
	return waiting, terms, err
}
