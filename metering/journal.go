package metering

import (
	"math/big"

	"purser/ids"
)

// EntryKind says why a balance changed.
type EntryKind string

// The kinds of journal entries.
const (
	EntryDeposit    EntryKind = "deposit"
	EntryGrant      EntryKind = "grant"
	EntryTopUp      EntryKind = "top-up"
	EntryCharge     EntryKind = "charge"
	EntryRefund     EntryKind = "refund"
	EntryDispute    EntryKind = "dispute"
	EntryAdjustment EntryKind = "adjustment"
	EntryReversal   EntryKind = "reversal" // of a charge
	EntryTransfer   EntryKind = "transfer" // to or from another wallet
)

// IDPrefix is the prefix of an entry's id: what came into a wallet is listed as a deposit,
// so that it has the same id everywhere.
func (k EntryKind) IDPrefix() string {
	switch k {
	case EntryDeposit, EntryGrant, EntryTopUp:
		return ids.Deposit
	}
	return ids.Transaction
}

// Delta is a signed amount: what an entry adds to, or takes from, balance minus debt.
type Delta struct {
	Amount Amount
	Out    bool
}

// Signed is the change as a number, negative when it takes.
func (d Delta) Signed() *big.Int {
	n := new(big.Int).SetUint64(uint64(d.Amount))
	if d.Out {
		n.Neg(n)
	}
	return n
}

// String writes the change in decimal nanocredits, with a minus when it takes.
func (d Delta) String() string { return d.sign() + d.Amount.String() }

// Credits writes the change in credits, with a minus when it takes.
func (d Delta) Credits() string { return d.sign() + d.Amount.Credits() }

func (d Delta) sign() string {
	if d.Out && d.Amount > 0 {
		return "-"
	}
	return ""
}

// Entry is one change of a balance, with the state after it. Entries are never
// changed or removed; the sum of a balance's deltas is its amount minus its debt.
type Entry struct {
	ID             ids.ID
	WalletID       ids.ID
	Seq            int64 // counts the wallet's entries, without a gap
	Kind           EntryKind
	CreditID       ids.ID
	Delta          Delta
	BalanceAfter   Amount
	DebtAfter      Amount
	IdempotencyKey *string // of a deposit by the caller
	CreatedAt      int64
}
