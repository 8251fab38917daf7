package metering

import (
	"purser/fault"
	"purser/ids"
)

// Balance is what a wallet holds of one credit. Amount and Debt are never both
// above zero: whatever comes in pays the debt first.
type Balance struct {
	CreditID  ids.ID
	CreditKey string
	Amount    Amount
	Debt      Amount
}

// Receive gives the balance after an amount came in, debt paid first.
func (b Balance) Receive(amount Amount) (Balance, error) {
	paid := min(b.Debt, amount)
	sum, ok := b.Amount.Add(amount - paid)
	if !ok {
		return b, fault.New(fault.BalanceOverflow)
	}
	b.Debt -= paid
	b.Amount = sum
	return b, nil
}

// Spend gives the balance after a charge, or false when it does not cover it.
// Nothing is a charge that every balance covers, in debt or not.
func (b Balance) Spend(amount Amount) (Balance, bool) {
	rest, ok := b.Amount.Sub(amount)
	if !ok {
		return b, false
	}
	b.Amount = rest
	return b, true
}

// TakeBack gives the balance after an amount that had come in was taken back, by
// a refund or a lost dispute. What the balance no longer holds becomes debt.
func (b Balance) TakeBack(amount Amount) (Balance, error) {
	held := min(b.Amount, amount)
	debt, ok := b.Debt.Add(amount - held)
	if !ok {
		return b, fault.New(fault.BalanceOverflow)
	}
	b.Amount -= held
	b.Debt = debt
	return b, nil
}
