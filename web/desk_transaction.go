package web

import (
	"math/big"

	"purser/ids"
	"purser/metering"
	"purser/store"
	"purser/tenancy"
	"purser/views/page"
)

// transaction answers for every kind of change of a balance. Deposits and requests
// have the same numbers under other names.
func (s *Site) transaction(v *visit) (answer, error) {
	id, err := v.id("id", ids.Transaction)
	if err != nil {
		return answer{}, err
	}
	t, err := v.tenant().Transaction(v.context, id)
	if err != nil {
		return answer{}, err
	}
	view := page.Change{ID: id.Format(ids.Transaction), Identity: t.Identity, WalletHref: v.walletPath(t.WalletID)}
	var entry metering.Entry
	if t.Event != nil {
		entry = t.Event.Entry()
		entry.Seq, view.CreditKey = t.Event.Seq, t.Event.CreditKey
		view.Event = v.eventDetails(*t.Event)
	} else {
		entry, view.CreditKey = t.Entry.Entry, t.Entry.CreditKey
		view.Reason, view.Source = t.Entry.Reason, sourceText(t.Entry.SourceKind, t.Entry.SourceID)
		if entry.IdempotencyKey != nil {
			view.IdempotencyKey = *entry.IdempotencyKey
		}
		if view.By, err = v.personNamed(t.ByUserID); err != nil {
			return answer{}, err
		}
	}
	view.Kind, view.Seq, view.Delta, view.CreatedAt = entry.Kind, entry.Seq, entry.Delta, entry.CreatedAt
	view.After = metering.Balance{CreditKey: view.CreditKey, Amount: entry.BalanceAfter, Debt: entry.DebtAfter}
	view.Before = balanceBefore(view.After, entry.Delta)
	view.Frame = v.frame("Transaction", "wallets")
	return show(page.Transaction(view)), nil
}

// balanceBefore undoes a change. Balance and debt together can need one digit more
// than either.
func balanceBefore(after metering.Balance, change metering.Delta) metering.Balance {
	size := func(a metering.Amount) *big.Int { return new(big.Int).SetUint64(uint64(a)) }
	before := new(big.Int).Sub(size(after.Amount), size(after.Debt))
	if change.Out {
		before.Add(before, size(change.Amount))
	} else {
		before.Sub(before, size(change.Amount))
	}
	b := metering.Balance{CreditKey: after.CreditKey}
	if before.Sign() < 0 {
		b.Debt = metering.Amount(before.Neg(before).Uint64())
	} else {
		b.Amount = metering.Amount(before.Uint64())
	}
	return b
}

func (v *visit) eventDetails(e store.EventFound) *page.EventDetails {
	details := &page.EventDetails{
		Event: e.Event, RequestID: e.TransactionID.Format(ids.Request), FeatureKey: e.FeatureKey, FeatureName: e.FeatureName, Unit: e.Unit,
		KeyName: e.KeyName, KeyID: e.KeyID.Format(ids.APIKey), Derivation: e.Derivation(),
	}
	if v.may(tenancy.FeaturesRead) {
		details.FeatureHref = v.appPath("features", e.FeatureKey, "edit")
	}
	if v.may(tenancy.KeysRead) && e.KeyName != "" {
		details.KeyHref = v.appPath("keys", details.KeyID)
	}
	if !e.DeduplicatedFrom.IsZero() {
		details.FirstHref, details.FirstID = v.transactionPath(e.DeduplicatedFrom), e.DeduplicatedFrom.Format(ids.Transaction)
	}
	return details
}

// personNamed is the name of somebody in the organization, or the id of who has left.
func (v *visit) personNamed(user ids.ID) (string, error) {
	if user.IsZero() {
		return "", nil
	}
	roster, err := v.organization().Roster(v.context)
	for _, member := range roster {
		if member.UserID == user {
			return member.Name, nil
		}
	}
	return user.Format(ids.User), err
}
