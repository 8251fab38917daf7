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

// ReceiveUpTo gives the balance after as much of an amount came in as fits into 19
// digits, and how much that is.
func (b Balance) ReceiveUpTo(amount Amount) (Balance, Amount) {
	paid := min(b.Debt, amount)
	kept := min(amount-paid, MaxAmount-b.Amount)
	b.Debt -= paid
	b.Amount += kept
	return b, paid + kept
}

// TakeBackUpTo gives the balance after as much of an amount was taken back as a
// debt of 19 digits allows, and how much that is.
func (b Balance) TakeBackUpTo(amount Amount) (Balance, Amount) {
	held := min(b.Amount, amount)
	owed := min(amount-held, MaxAmount-b.Debt)
	b.Amount -= held
	b.Debt += owed
	return b, held + owed
}
