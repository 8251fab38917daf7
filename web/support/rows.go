package support

import (
	"purser/ids"
	"purser/store/reports"
	"purser/tenancy"
	supportpage "purser/views/page/support"
	"purser/web/site"
)

func newEventRow(req *site.Request, e reports.EventFound, whole bool) supportpage.EventRow {
	row := supportpage.EventRow{
		Href: req.TransactionLink(e.TransactionID), EventID: e.EventID, FeatureKey: e.FeatureKey, EntityID: e.EntityID,
		Quantity: e.Quantity, Unit: e.Unit, Amount: e.Charge.Amount, CreditKey: e.CreditKey, OccurredAt: e.OccurredAt, CreatedAt: e.CreatedAt,
	}
	if whole {
		row.Identity, row.WalletHref = e.Identity, req.WalletLink(e.WalletID)
	}
	if !e.DeduplicatedFrom.IsZero() {
		row.FirstHref = req.TransactionLink(e.DeduplicatedFrom)
	}
	return row
}

func newDepositRow(req *site.Request, d reports.DepositFound, whole bool) supportpage.DepositRow {
	row := supportpage.DepositRow{
		Href: req.TransactionLink(d.ID), ID: d.ID.Format(ids.Deposit), Kind: d.Kind, Amount: d.Amount, CreditKey: d.CreditKey,
		Source: sourceText(d.SourceKind, d.SourceID), CreatedAt: d.CreatedAt,
	}
	if d.IdempotencyKey != nil {
		row.IdempotencyKey = *d.IdempotencyKey
	}
	if whole {
		row.Identity, row.WalletHref = d.Identity, req.WalletLink(d.WalletID)
	}
	return row
}

// sourceText names the payment of an entry.
func sourceText(kind, id string) string {
	if id == "" {
		return ""
	}
	return kind + " " + id
}

func newSubscriptionRow(req *site.Request, s reports.SubscriptionFound, whole bool) supportpage.SubscriptionRow {
	row := supportpage.SubscriptionRow{
		ID: s.ID.Format(ids.Subscription), ProviderID: s.ProviderID, PlanName: s.PlanName, Status: s.Status, Period: s.Period,
		CancelAtPeriodEnd: s.CancelAtPeriodEnd, Downgrade: s.Downgrade, Pending: s.Pending, CreatedAt: s.CreatedAt, EndedAt: s.EndedAt,
	}
	if s.PlanKey != "" && req.May(tenancy.PlansRead) {
		row.PlanHref = req.AppPath("plans", s.PlanKey, "view")
	}
	if whole {
		row.Identity, row.WalletHref = s.Identity, req.WalletLink(s.WalletID)
	}
	return row
}
