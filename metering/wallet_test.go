package metering

import (
	"testing"

	"purser/fault"
	"purser/ids"
)

func TestSetBillingPeriod(t *testing.T) {
	monthly, weekly := BillingPeriod{Month, 1000}, BillingPeriod{Week, 1000}

	t.Run("can be set and changed before the first use", func(t *testing.T) {
		w, err := Wallet{}.SetBillingPeriod(monthly)
		if err != nil || *w.BillingPeriod != monthly {
			t.Fatalf("got %v, %v", w.BillingPeriod, err)
		}
		if w, err = w.SetBillingPeriod(weekly); err != nil || *w.BillingPeriod != weekly {
			t.Errorf("got %v, %v", w.BillingPeriod, err)
		}
	})
	t.Run("cannot be changed after the first use", func(t *testing.T) {
		w, err := Wallet{Charged: true, BillingPeriod: &monthly}.SetBillingPeriod(weekly)
		if !fault.Is(err, fault.BillingPeriodLocked) || *w.BillingPeriod != monthly {
			t.Errorf("got %v, %v", w.BillingPeriod, err)
		}
	})
	t.Run("cannot be set after the first use", func(t *testing.T) {
		w, err := Wallet{Charged: true}.SetBillingPeriod(weekly)
		if !fault.Is(err, fault.BillingPeriodLocked) || w.BillingPeriod != nil {
			t.Errorf("got %v, %v", w.BillingPeriod, err)
		}
	})
	t.Run("setting the same one is no change", func(t *testing.T) {
		w, err := Wallet{Charged: true, BillingPeriod: &monthly}.SetBillingPeriod(BillingPeriod{Month, 1000})
		if err != nil || *w.BillingPeriod != monthly {
			t.Errorf("got %v, %v", w.BillingPeriod, err)
		}
	})
}

func TestWalletBalance(t *testing.T) {
	gold, silver := ids.New(), ids.New()
	w := Wallet{Balances: []Balance{{CreditID: gold, CreditKey: "gold", Amount: 5}}}
	if got := w.Balance(gold); got.Amount != 5 || got.CreditKey != "gold" {
		t.Errorf("the stored balance is %+v", got)
	}
	if got := w.Balance(silver); got != (Balance{CreditID: silver}) {
		t.Errorf("a balance that is not stored is %+v", got)
	}
}
