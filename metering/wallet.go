package metering

import (
	"purser/fault"
	"purser/ids"
)

// MaxBalances is how many credits one wallet can hold.
const MaxBalances = 100

// Wallet holds the balances of one identity in one application.
type Wallet struct {
	ID            ids.ID
	Identity      string
	BillingPeriod *BillingPeriod // nil until it is set
	Charged       bool           // whether usage was ever accepted
	CreatedAt     int64
	Balances      []Balance // the stored ones; a credit that is absent has zero
}

// BillingPeriodLocked reports whether the billing period can no longer change.
func (w Wallet) BillingPeriodLocked() bool { return w.Charged }

// SetBillingPeriod returns the wallet with another billing period, unless usage was
// charged under the current one. Setting the same period is no change.
func (w Wallet) SetBillingPeriod(p BillingPeriod) (Wallet, error) {
	if w.BillingPeriodLocked() && (w.BillingPeriod == nil || *w.BillingPeriod != p) {
		return w, fault.New(fault.BillingPeriodLocked)
	}
	w.BillingPeriod = &p
	return w, nil
}

// Interval is the length of a billing period.
type Interval string

// The intervals of a wallet's billing period.
const (
	Day   Interval = "day"
	Week  Interval = "week"
	Month Interval = "month"
)

// BillingPeriod repeats from its anchor, in both directions.
type BillingPeriod struct {
	Interval Interval
	Anchor   int64
}

// Balance is what the wallet holds of a credit, which is nothing when no
// balance is stored.
func (w Wallet) Balance(creditID ids.ID) Balance {
	for i := range w.Balances {
		if w.Balances[i].CreditID == creditID {
			return w.Balances[i]
		}
	}
	return Balance{CreditID: creditID}
}

// setBalance changes a stored balance. A credit without one has nothing to
// spend, so a decision never makes the first.
func (w Wallet) setBalance(b Balance) {
	for i := range w.Balances {
		if w.Balances[i].CreditID == b.CreditID {
			w.Balances[i] = b
		}
	}
}
