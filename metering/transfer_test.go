package metering

import (
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"purser/fault"
	"purser/ids"
)

func TestTransfersConserveWhatBothWalletsHave(t *testing.T) {
	t.Parallel()
	gold, silver := Credit{ID: ids.New(), Key: "gold"}, Credit{ID: ids.New(), Key: "silver"}
	rapid.Check(t, func(r *rapid.T) {
		wallets := make([]Wallet, 3)
		for i := range wallets {
			wallets[i].ID = ids.New()
			for _, c := range []Credit{gold, silver} {
				b := Balance{CreditID: c.ID, CreditKey: c.Key, Amount: anyAmount.Draw(r, "balance")}
				if rapid.Bool().Draw(r, "in debt") {
					b.Amount, b.Debt = 0, b.Amount
				}
				wallets[i].Balances = append(wallets[i].Balances, b)
			}
		}
		total := func() *big.Int {
			sum := new(big.Int)
			for _, w := range wallets {
				sum.Add(sum, net(w.Balance(gold.ID)))
			}
			return sum
		}
		for range rapid.IntRange(1, 12).Draw(r, "transfers") {
			from, to := rapid.IntRange(0, 2).Draw(r, "from"), rapid.IntRange(0, 2).Draw(r, "to")
			held, receives := wallets[from].Balance(gold.ID), wallets[to].Balance(gold.ID)
			amount := rapid.OneOf(anyAmount, rapid.Just(held.Amount), rapid.Just(receives.Debt)).Draw(r, "amount")
			before := total()
			got, err := wallets[from].Transfer(wallets[to], gold, amount)
			fits := new(big.Int).Add(net(receives), bigOf(amount)).Cmp(bigMax) <= 0
			var want fault.Code
			switch {
			case from == to:
				want = fault.TransferToSelf
			case amount == 0:
				want = fault.InvalidRequest
			case amount > held.Amount:
				want = fault.InsufficientBalance
			case !fits:
				want = fault.BalanceOverflow
			}
			if want != "" {
				if !fault.Is(err, want) || got != (Transfer{}) {
					r.Fatalf("%s of %+v to %+v: %+v, %v, want %s", amount, held, receives, got, err, want)
				}
				continue
			}
			if err != nil {
				r.Fatalf("%s of %+v to %+v: %v", amount, held, receives, err)
			}
			if got.From.Amount != held.Amount-amount || got.From.Debt != held.Debt {
				r.Fatalf("%s of %+v leave %+v", amount, held, got.From)
			}
			if got.To.Debt != receives.Debt-min(receives.Debt, amount) || got.To.Debt > 0 && got.To.Amount > receives.Amount {
				r.Fatalf("%s on %+v make %+v: debt is paid first", amount, receives, got.To)
			}
			wallets[from].setBalance(got.From)
			wallets[to].setBalance(got.To)
			if total().Cmp(before) != 0 {
				r.Fatalf("%s before, %s after", before, total())
			}
		}
	})
}

func TestTransferOfACreditThatAWalletNeverHeld(t *testing.T) {
	t.Parallel()
	gold := Credit{ID: ids.New(), Key: "gold"}
	full := Wallet{ID: ids.New()}
	for range MaxBalances {
		full.Balances = append(full.Balances, Balance{CreditID: ids.New()})
	}
	rich := Wallet{ID: ids.New(), Balances: []Balance{{CreditID: gold.ID, Amount: MaxAmount}}}
	t.Run("from it is refused", func(t *testing.T) {
		if _, err := full.Transfer(rich, gold, 1); !fault.Is(err, fault.InsufficientBalance) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("to it opens a balance", func(t *testing.T) {
		got, err := rich.Transfer(Wallet{ID: ids.New(), Balances: full.Balances[1:]}, gold, MaxAmount)
		if err != nil || got.From.Amount != 0 || got.To != (Balance{CreditID: gold.ID, CreditKey: "gold", Amount: MaxAmount}) {
			t.Errorf("got %+v, %v", got, err)
		}
	})
	t.Run("to it is refused past a hundred balances", func(t *testing.T) {
		if _, err := rich.Transfer(full, gold, 1); !fault.Is(err, fault.TooManyBalances) {
			t.Errorf("got %v", err)
		}
	})
}
