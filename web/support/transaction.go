package support

import (
	"math/big"

	"purser/ids"
	"purser/metering"
	"purser/store/reports"
	"purser/tenancy"
	"purser/views/component"
	supportpage "purser/views/page/support"
	"purser/web/site"
)

// transaction shows any change of a balance. Its path has the prefix of transactions, also
// for a deposit.
func (s *Pages) transaction(req *site.Request, id ids.ID) (site.Response, error) {
	t, err := req.Reports().Transaction(req.Context, id)
	if err != nil {
		return site.Response{}, err
	}
	view := supportpage.Change{ID: id.Format(ids.Transaction), Identity: t.Identity, WalletHref: req.WalletLink(t.WalletID)}
	var entry metering.Entry
	if t.Event != nil {
		entry = t.Event.Entry()
		entry.Seq, view.CreditKey = t.Event.Seq, t.Event.CreditKey
		view.Event = eventDetails(req, *t.Event)
		if err := showReversals(req, *t.Event, &view); err != nil {
			return site.Response{}, err
		}
	} else {
		entry, view.CreditKey = t.Entry.Entry, t.Entry.CreditKey
		view.ID = id.Format(entry.Kind.IDPrefix())
		view.Reason, view.Source = t.Entry.Reason, sourceText(t.Entry.SourceKind, t.Entry.SourceID)
		if entry.IdempotencyKey != nil {
			view.IdempotencyKey = *entry.IdempotencyKey
		}
		if !t.Reversed.IsZero() {
			view.ReversedHref, view.ReversedID = req.TransactionPath(t.Reversed), t.Reversed.Format(ids.Transaction)
		}
		if side := t.Entry.Transfer; side != nil {
			view.Other, view.OtherHref = side.Identity, req.WalletLink(side.WalletID)
		}
		if view.By, err = userName(req, t.ByUserID); err != nil {
			return site.Response{}, err
		}
		if view.Payment, err = paymentFacts(req, t); err != nil {
			return site.Response{}, err
		}
	}
	view.Kind, view.Seq, view.Delta, view.CreatedAt = entry.Kind, entry.Seq, entry.Delta, entry.CreatedAt
	view.After = metering.Balance{CreditKey: view.CreditKey, Amount: entry.BalanceAfter, Debt: entry.DebtAfter}
	view.Before = balanceBefore(view.After, entry.Delta)
	view.List = req.LinkIfPermitted(tenancy.WalletsRead, "wallets")
	view.Frame = req.Frame(view.Title()+" · "+component.ShortIdentity(view.Identity), "wallets")
	return site.Show(supportpage.Transaction(view)), nil
}

// balanceBefore reverses a change. Balance and debt together can need one digit more
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

// eventDetails has the id that the request of an event has if it was sent on its own. Events
// of batches and groups have ids of their own, and no column says which these are.
func eventDetails(req *site.Request, e reports.EventFound) *supportpage.EventDetails {
	details := &supportpage.EventDetails{
		Event: e.Event, RequestID: e.TransactionID.Format(ids.Request), FeatureKey: e.FeatureKey, FeatureName: e.FeatureName, Unit: e.Unit,
		KeyName: e.KeyName, KeyID: e.KeyID.Format(ids.APIKey), Derivation: e.Derivation(),
		FeatureHref: req.LinkIfPermitted(tenancy.FeaturesRead, "features", e.FeatureKey, "edit"),
	}
	if e.KeyName != "" {
		details.KeyHref = req.LinkIfPermitted(tenancy.KeysRead, "keys", details.KeyID)
	}
	if !e.DeduplicatedFrom.IsZero() {
		details.FirstHref, details.FirstID = req.TransactionPath(e.DeduplicatedFrom), e.DeduplicatedFrom.Format(ids.Transaction)
	}
	return details
}

// userName is the name of a member, or the id of a former member.
func userName(req *site.Request, user ids.ID) (string, error) {
	if user.IsZero() {
		return "", nil
	}
	roster, err := req.Organization().Roster(req.Context)
	for _, member := range roster {
		if member.UserID == user {
			return member.Name, nil
		}
	}
	return user.Format(ids.User), err
}
