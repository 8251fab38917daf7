package metering

import "purser/fault"

// MaxTransferReason is the maximum length of a transfer's reason, in characters.
const MaxTransferReason = 200

// Transfer is the decision to move credits between two wallets: both balances after it.
type Transfer struct {
	From, To Balance
}

// Transfer decides whether an amount of a credit moves from w to another wallet. It takes
// no more than the balance, and pays the receiver's debt first. Amount minus debt of both
// wallets together stays the same.
func (w Wallet) Transfer(to Wallet, credit Credit, amount Amount) (t Transfer, err error) {
	switch {
	case w.ID == to.ID:
		return t, fault.New(fault.TransferToSelf)
	case amount == 0:
		return t, fault.Newf(fault.InvalidRequest, "The amount must be greater than zero.")
	}
	held := w.Balance(credit.ID)
	from, ok := held.Spend(amount)
	if !ok {
		return t, fault.Newf(fault.InsufficientBalance, "The sender's balance is %s %s. Nothing was moved.", held.Amount.Credits(), credit.Key)
	}
	if !to.holds(credit) && len(to.Balances) >= MaxBalances {
		return t, fault.New(fault.TooManyBalances)
	}
	received, err := to.Balance(credit.ID).Receive(amount)
	if err != nil {
		return t, err
	}
	from.CreditKey, received.CreditKey = credit.Key, credit.Key
	return Transfer{From: from, To: received}, nil
}

// holds reports whether a balance of the credit is stored.
func (w Wallet) holds(credit Credit) bool {
	for i := range w.Balances {
		if w.Balances[i].CreditID == credit.ID {
			return true
		}
	}
	return false
}
