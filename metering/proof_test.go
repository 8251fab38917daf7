package metering_test

import (
	"testing"

	"purser/ids"
	"purser/metering"
)

func TestReckon(t *testing.T) {
	t.Parallel()
	gold, silver := ids.New(), ids.New()
	entry := func(credit ids.ID, amount metering.Amount, out bool, balance, debt metering.Amount) metering.Entry {
		return metering.Entry{CreditID: credit, Delta: metering.Delta{Amount: amount, Out: out}, BalanceAfter: balance, DebtAfter: debt}
	}
	// Newest first: 10 gold came in, 4 went, 9 were taken back, 5 paid the debt; silver lies between.
	entries := []metering.Entry{
		entry(gold, 5, false, 2, 0),
		entry(gold, 9, true, 0, 3),
		entry(silver, 1, true, 7, 0),
		entry(gold, 4, true, 6, 0),
		entry(gold, 10, false, 10, 0),
	}

	t.Run("follows each credit by itself, through a debt and out of it", func(t *testing.T) {
		list := metering.Prove(entries, map[ids.ID]metering.Balance{gold: {CreditID: gold}})
		if len(list) != 2 || list[0].CreditID != gold || list[1].CreditID != silver {
			t.Fatalf("got %+v", list)
		}
		g := list[0]
		if !g.Valid || !g.Known || g.Entries != 4 || g.Credits.String() != "15" || g.Debits.String() != "13" || g.Closing.Amount != 2 || g.Opening.Amount != 0 {
			t.Errorf("gold: %+v", g)
		}
		if s := list[1]; !s.Valid || s.Known || s.Opening.Amount != 8 {
			t.Errorf("silver: %+v", s)
		}
	})

	t.Run("finds an entry that leaves another balance", func(t *testing.T) {
		forged := append([]metering.Entry(nil), entries...)
		forged[3].BalanceAfter = 7
		list := metering.Prove(forged, nil)
		if list[0].Valid || !list[1].Valid {
			t.Errorf("got %+v", list)
		}
	})

	t.Run("finds a first entry that does not follow from the one before", func(t *testing.T) {
		list := metering.Prove(entries, map[ids.ID]metering.Balance{gold: {CreditID: gold, Amount: 1}})
		if list[0].Valid {
			t.Errorf("got %+v", list[0])
		}
	})

	t.Run("takes a lone first entry at its word, in debt as well", func(t *testing.T) {
		list := metering.Prove([]metering.Entry{entry(gold, 2, false, 0, 5)}, nil)
		if r := list[0]; !r.Valid || r.Known || r.Opening.Debt != 7 || r.Opening.Amount != 0 {
			t.Errorf("got %+v", r)
		}
	})
}
