package metering

import (
	"math/big"
	"testing"

	"purser/fault"

	"pgregory.net/rapid"
)

func TestReceive(t *testing.T) {
	for name, c := range map[string]struct {
		from   Balance
		amount Amount
		want   Balance
	}{
		"adds to the balance":         {Balance{Amount: 5}, 3, Balance{Amount: 8}},
		"takes nothing":               {Balance{Amount: 5}, 0, Balance{Amount: 5}},
		"pays a part of the debt":     {Balance{Debt: 5}, 3, Balance{Debt: 2}},
		"pays the debt to the last":   {Balance{Debt: 5}, 5, Balance{}},
		"pays the debt, then fills":   {Balance{Debt: 5}, 8, Balance{Amount: 3}},
		"fills to 19 digits":          {Balance{Amount: MaxAmount - 1}, 1, Balance{Amount: MaxAmount}},
		"pays the largest debt whole": {Balance{Debt: MaxAmount}, MaxAmount, Balance{}},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := c.from.Receive(c.amount); err != nil || got != c.want {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
	t.Run("refuses a 20th digit and changes nothing", func(t *testing.T) {
		from := Balance{Amount: MaxAmount}
		if got, err := from.Receive(1); !fault.Is(err, fault.BalanceOverflow) || got != from {
			t.Errorf("got %+v, %v", got, err)
		}
	})
}

func TestSpend(t *testing.T) {
	t.Run("takes the charge", func(t *testing.T) {
		if got, ok := (Balance{Amount: 5}).Spend(5); !ok || got != (Balance{}) {
			t.Errorf("got %+v, %t", got, ok)
		}
	})
	t.Run("refuses one nanocredit too many and changes nothing", func(t *testing.T) {
		from := Balance{Amount: 5}
		if got, ok := from.Spend(6); ok || got != from {
			t.Errorf("got %+v, %t", got, ok)
		}
	})
	t.Run("lets a free use through in debt", func(t *testing.T) {
		from := Balance{Debt: 9}
		if got, ok := from.Spend(0); !ok || got != from {
			t.Errorf("got %+v, %t", got, ok)
		}
	})
}

func TestTakeBack(t *testing.T) {
	for name, c := range map[string]struct {
		from   Balance
		amount Amount
		want   Balance
	}{
		"takes from the balance":              {Balance{Amount: 5}, 3, Balance{Amount: 2}},
		"takes the whole balance":             {Balance{Amount: 5}, 5, Balance{}},
		"leaves as debt what is already gone": {Balance{Amount: 5}, 8, Balance{Debt: 3}},
		"adds to a debt":                      {Balance{Debt: 3}, 4, Balance{Debt: 7}},
		"fills the debt to 19 digits":         {Balance{}, MaxAmount, Balance{Debt: MaxAmount}},
	} {
		t.Run(name, func(t *testing.T) {
			if got, taken := c.from.TakeBackUpTo(c.amount); taken != c.amount || got != c.want {
				t.Errorf("got %+v, %s taken", got, taken)
			}
		})
	}
	t.Run("takes nothing that needs a 20th digit of debt", func(t *testing.T) {
		if got, taken := (Balance{Debt: MaxAmount - 1}).TakeBackUpTo(3); taken != 1 || got.Debt != MaxAmount {
			t.Errorf("got %+v, %s taken", got, taken)
		}
	})
}

// takeBackAll takes back the whole amount or nothing.
func takeBackAll(b Balance, amount Amount) (Balance, error) {
	after, taken := b.TakeBackUpTo(amount)
	if taken < amount {
		return b, fault.New(fault.BalanceOverflow)
	}
	return after, nil
}

// Whatever happens to a balance, it is one signed number: what it holds, or
// what it owes, never both.
func TestBalanceIsOneNumber(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b Balance
		net := new(big.Int)
		low := new(big.Int).Neg(bigMax)
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			amount := anyAmount.Draw(t, "amount")
			value := new(big.Int)
			var done bool
			switch rapid.SampledFrom([]string{"receive", "spend", "take back"}).Draw(t, "step") {
			case "receive":
				next, err := b.Receive(amount)
				b, done = next, err == nil
				value.Add(net, bigOf(amount))
				if done != (value.Cmp(bigMax) <= 0) {
					t.Fatalf("receiving %s on %s: done is %t", amount, net, done)
				}
			case "spend":
				b, done = b.Spend(amount)
				value.Sub(net, bigOf(amount))
				if done != (amount == 0 || value.Sign() >= 0) {
					t.Fatalf("spending %s of %s: done is %t", amount, net, done)
				}
			case "take back":
				var taken Amount
				b, taken = b.TakeBackUpTo(amount)
				value.Sub(net, bigOf(taken))
				done = true
				if taken > amount || taken < amount && value.Cmp(low) != 0 {
					t.Fatalf("taking %s back from %s: %s is taken", amount, net, taken)
				}
			}
			if done {
				net = value
			}
			if b.Amount > 0 && b.Debt > 0 {
				t.Fatalf("%+v holds and owes", b)
			}
			if got := new(big.Int).Sub(bigOf(b.Amount), bigOf(b.Debt)); got.Cmp(net) != 0 {
				t.Fatalf("%+v, and the sum of what happened is %s", b, net)
			}
		}
	})
}
