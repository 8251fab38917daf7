package metering

import (
	"math/big"

	"purser/ids"
)

// BalanceProof proves a range of one balance's entries: the opening balance, credits,
// debits and the closing balance. A debt is a negative balance.
type BalanceProof struct {
	CreditID ids.ID
	Entries  int
	Opening  Balance
	Credits  Total
	Debits   Total
	Closing  Balance
	Known    bool // the opening is that of an earlier entry, or zero at the wallet's start
	Valid    bool // each entry's balance is the previous one plus its delta
}

// Prove proves entries of one wallet, newest first, per credit in order of appearance.
// Openings are the balances after earlier entries; without one, the opening is derived
// from the credit's own first entry.
func Prove(entries []Entry, openings map[ids.ID]Balance) []BalanceProof {
	var list []BalanceProof
	place := make(map[ids.ID]int)
	for _, e := range entries {
		if _, met := place[e.CreditID]; !met {
			place[e.CreditID] = len(list)
			list = append(list, BalanceProof{CreditID: e.CreditID, Valid: true})
		}
	}
	for i := len(entries) - 1; i >= 0; i-- {
		list[place[entries[i].CreditID]].take(entries[i], openings)
	}
	return list
}

func (r *BalanceProof) take(e Entry, openings map[ids.ID]Balance) {
	after := Balance{CreditID: e.CreditID, Amount: e.BalanceAfter, Debt: e.DebtAfter}
	change := e.Delta.Signed()
	if r.Entries == 0 {
		if r.Opening, r.Known = openings[e.CreditID]; !r.Known {
			r.Opening = balanceOf(e.CreditID, change.Sub(net(after), change))
		}
		r.Closing = r.Opening
	}
	if new(big.Int).Add(net(r.Closing), e.Delta.Signed()).Cmp(net(after)) != 0 {
		r.Valid = false
	}
	if e.Delta.Out {
		r.Debits = r.Debits.Plus(e.Delta.Amount)
	} else {
		r.Credits = r.Credits.Plus(e.Delta.Amount)
	}
	r.Closing = after
	r.Entries++
}

// net is the balance minus the debt.
func net(b Balance) *big.Int {
	n := new(big.Int).SetUint64(uint64(b.Amount))
	return n.Sub(n, new(big.Int).SetUint64(uint64(b.Debt)))
}

func balanceOf(creditID ids.ID, net *big.Int) Balance {
	size := Amount(new(big.Int).Abs(net).Uint64())
	if net.Sign() < 0 {
		return Balance{CreditID: creditID, Debt: size}
	}
	return Balance{CreditID: creditID, Amount: size}
}
