package metering

import (
	"math"
	"math/big"

	"purser/ids"
)

// model is the rules over again, plain and slow: it keeps the whole history and
// recomputes everything from it for each use, with numbers that cannot
// overflow. It borrows the engine's nouns and none of its functions.
type model struct {
	now     int64
	wallets map[ids.ID]*modelWallet
	history []modelRecord
}

type modelWallet struct {
	billing      *BillingPeriod
	subscription *Subscription
	net          map[ids.ID]*big.Int // by credit: what is held, or below zero what is owed
}

type modelRecord struct {
	event, entity   string
	transaction     ids.ID
	wallet, feature ids.ID
	quantity        int64
	amount          *big.Int
	period          Period
	from            ids.ID
	counts          Period // of the limit that counted it
}

type modelAnswer struct {
	said        string // the verdict, or the code
	transaction ids.ID
	amount      *big.Int
	period      Period
	from        ids.ID
	limit       *Limit
	used        *big.Int
	counts      Period
}

func newModel(wallets ...ids.ID) *model {
	m := &model{wallets: map[ids.ID]*modelWallet{}}
	for _, id := range wallets {
		m.wallets[id] = &modelWallet{net: map[ids.ID]*big.Int{}}
	}
	return m
}

func (w *modelWallet) netOf(credit ids.ID) *big.Int {
	if w.net[credit] == nil {
		w.net[credit] = new(big.Int)
	}
	return w.net[credit]
}

// receive and takeBack say whether 19 digits are enough.
func (w *modelWallet) receive(credit ids.ID, amount Amount) bool {
	after := new(big.Int).Add(w.netOf(credit), bigOf(amount))
	if after.Cmp(bigMax) > 0 {
		return false
	}
	w.net[credit] = after
	return true
}

func (w *modelWallet) takeBack(credit ids.ID, amount Amount) bool {
	after := new(big.Int).Sub(w.netOf(credit), bigOf(amount))
	if after.CmpAbs(bigMax) > 0 {
		return false
	}
	w.net[credit] = after
	return true
}

// use answers and, when the answer leaves a record, remembers.
func (m *model) use(walletID ids.ID, u Usage) modelAnswer {
	answer, record := m.answer(walletID, u)
	if record != nil && u.EventID != "" {
		m.history = append(m.history, *record)
		net := m.wallets[walletID].netOf(u.Feature.CreditID)
		net.Sub(net, record.amount)
	}
	return answer
}

func (m *model) answer(walletID ids.ID, u Usage) (modelAnswer, *modelRecord) {
	w, f := m.wallets[walletID], u.Feature
	zero := new(big.Int)
	for _, r := range m.history {
		if r.event == u.EventID {
			return modelAnswer{said: "duplicate", transaction: r.transaction, amount: r.amount, period: r.period}, nil
		}
	}
	if (f.PricingMode == "callback") != (u.Amount != nil) {
		if u.Amount == nil {
			return modelAnswer{said: "amount_required", amount: zero}, nil
		}
		return modelAnswer{said: "amount_not_accepted", amount: zero}, nil
	}

	at := m.now
	if u.OccurredAt != nil {
		at = *u.OccurredAt
	}
	sub := w.subscription
	if sub != nil && (sub.Status == "incomplete" || sub.Status == "canceled") {
		sub = nil
	}
	a := modelAnswer{transaction: u.TransactionID, amount: zero}
	if sub != nil {
		for _, l := range sub.Terms.Limits {
			if l.FeatureID == f.ID {
				a.limit = &l
				a.counts = sub.Period
				if l.Period == "month" {
					a.counts = naiveMonth(0, at)
				}
				a.used = m.used(walletID, f.ID, a.counts)
			}
		}
	}
	missing := false
	switch f.Deduplication {
	case "none":
	case "day":
		a.period = naiveStretch(0, 86_400_000, at)
	case "week":
		a.period = naiveStretch(4*86_400_000, 7*86_400_000, at)
	case "month":
		a.period = naiveMonth(0, at)
	default:
		switch {
		case w.billing != nil:
			a.period = naivePeriod(*w.billing, at)
		case sub != nil:
			a.period = sub.Period
		default:
			missing = true
		}
	}
	if missing {
		a.said = "billing_period_missing"
		return a, nil
	}
	record := &modelRecord{
		event: u.EventID, entity: u.EntityID, transaction: u.TransactionID, wallet: walletID, feature: f.ID,
		quantity: u.Quantity, amount: zero, period: a.period,
	}
	if f.Deduplication != "none" {
		for _, r := range m.history {
			if r.wallet == walletID && r.feature == f.ID && r.entity == u.EntityID && r.period == a.period && r.from.IsZero() {
				a.said, a.from, record.from = "deduplicated", r.transaction, r.transaction
				return a, record
			}
		}
	}

	inForce := sub != nil && (sub.Status == "active" || sub.Status == "trialing")
	if a.limit != nil && !inForce {
		a.said = "subscription_inactive"
		return a, nil
	}
	quantity := big.NewInt(u.Quantity)
	billable := new(big.Int).Set(quantity)
	if a.limit != nil {
		left := new(big.Int).Sub(big.NewInt(a.limit.Limit), a.used)
		if left.Sign() < 0 {
			left.SetInt64(0)
		}
		switch billable.Sub(quantity, left); {
		case billable.Sign() < 0:
			billable.SetInt64(0)
		case billable.Sign() > 0 && a.limit.Overage == "block":
			a.said = "feature_limit_exceeded"
			return a, nil
		}
		if after := new(big.Int).Add(a.used, quantity); after.Cmp(big.NewInt(math.MaxInt64)) > 0 {
			a.said = "usage_out_of_range"
			return a, nil
		}
		record.counts = a.counts
	}

	charge := new(big.Int)
	if u.Amount != nil {
		charge = bigCeil(charge.Mul(bigOf(*u.Amount), billable), quantity)
	} else {
		points := int64(10_000)
		if inForce {
			for _, x := range sub.Terms.Multipliers {
				if x.FeatureID == f.ID {
					points = x.BasisPoints
				}
			}
		}
		charge.Mul(bigOf(f.Cost), billable)
		charge.Mul(charge, big.NewInt(points))
		charge = bigCeil(charge, new(big.Int).Mul(big.NewInt(f.QuantityPerUnit), big.NewInt(10_000)))
	}
	if charge.Cmp(bigMax) > 0 {
		a.said = "charge_out_of_range"
		return a, nil
	}
	a.amount = charge
	if charge.Sign() > 0 && charge.Cmp(w.netOf(f.CreditID)) > 0 {
		a.said = "insufficient_balance"
		return a, nil
	}
	a.said, record.amount = "accepted", charge
	return a, record
}

func (m *model) used(wallet, feature ids.ID, counts Period) *big.Int {
	sum := new(big.Int)
	for _, r := range m.history {
		if r.wallet == wallet && r.feature == feature && r.counts == counts && r.from.IsZero() {
			sum.Add(sum, big.NewInt(r.quantity))
		}
	}
	return sum
}
