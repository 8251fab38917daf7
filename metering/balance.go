package metering

import (
	"purser/fault"
	"purser/ids"
)

// Balance is a wallet's balance of one credit. Amount and Debt are never both positive:
// credits pay the debt first.
type Balance struct {
	CreditID  ids.ID
	CreditKey string
	Amount    Amount
	Debt      Amount
}

// Receive returns the balance after a credit, which pays the debt first.
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

// Spend returns the balance after a charge, or false when it does not cover it. Every
// balance covers a charge of zero, also one in debt.
func (b Balance) Spend(amount Amount) (Balance, bool) {
	rest, ok := b.Amount.Sub(amount)
	if !ok {
		return b, false
	}
	b.Amount = rest
	return b, true
}

// ReceiveUpTo returns the balance after a credit of as much of the amount as fits into
// 19 digits, and how much that is.
func (b Balance) ReceiveUpTo(amount Amount) (Balance, Amount) {
	paid := min(b.Debt, amount)
	kept := min(amount-paid, MaxAmount-b.Amount)
	b.Debt -= paid
	b.Amount += kept
	return b, paid + kept
}

// TakeBackUpTo returns the balance after a refund or a lost dispute of an earlier credit,
// and how much of the amount was taken: what the balance does not cover becomes debt, up to
// 19 digits.
func (b Balance) TakeBackUpTo(amount Amount) (Balance, Amount) {
	held := min(b.Amount, amount)
	owed := min(amount-held, MaxAmount-b.Debt)
	b.Amount -= held
	b.Debt += owed
	return b, held + owed
}
