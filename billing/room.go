package billing

import (
	"purser/fault"
	"purser/ids"
	"purser/metering"
)

// CheckRoom refuses grants that exceed the wallet's limits: the number of balances, or
// 19 digits in one. It is called before a charge.
func CheckRoom(held []metering.Balance, grants []Grant) error {
	r := newRoom(held)
	for _, g := range grants {
		if err := r.add(g); err != nil {
			return err
		}
	}
	return nil
}

// Fitting returns the grants that fit into the wallet, added in order.
func Fitting(held []metering.Balance, grants []Grant) (fits []Grant) {
	r := newRoom(held)
	for _, g := range grants {
		if r.add(g) == nil {
			fits = append(fits, g)
		}
	}
	return fits
}

// CheckRoom refuses an order whose grants exceed the wallet's limits. A downgrade
// grants at the renewal: amounts may be spent by then, but the number of balances
// never falls.
func (o ChangeOrder) CheckRoom(held []metering.Balance) error {
	switch o.Kind {
	case Keep, StartFree: // a start grants by its first payment
		return nil
	case Downgrade:
		emptied := make([]metering.Balance, len(held))
		for i, b := range held {
			emptied[i].CreditID = b.CreditID
		}
		return CheckRoom(emptied, o.Target.Grants)
	default:
		return CheckRoom(held, o.Target.Grants)
	}
}

// room is the balances of a wallet while grants are added to them.
type room map[ids.ID]metering.Balance

func newRoom(held []metering.Balance) room {
	r := make(room, len(held))
	for _, b := range held {
		r[b.CreditID] = b
	}
	return r
}

func (r room) add(g Grant) error {
	if g.Amount == 0 {
		return nil
	}
	b, held := r[g.CreditID]
	if !held && len(r) >= metering.MaxBalances {
		return fault.New(fault.TooManyBalances)
	}
	b, err := b.Receive(g.Amount)
	if err == nil {
		r[g.CreditID] = b
	}
	return err
}
