package web

import (
	"net/url"
	"strconv"

	"purser/fault"
	"purser/ids"
	"purser/store"
	"purser/tenancy"
	"purser/views/component"
	"purser/views/page"
)

// deskPage is how many rows a list of the desk shows at once.
const deskPage = 50

// listing is a list's address with the filters that are set.
type listing struct {
	path   string
	filter url.Values
}

// listing keeps the named filters of the query.
func (v *visit) listing(path string, filters ...string) listing {
	l := listing{path: path, filter: url.Values{}}
	for _, name := range filters {
		if value := v.query(name); value != "" {
			l.filter.Set(name, value)
		}
	}
	return l
}

// file is the address of what the list shows, as a file.
func (l listing) file() string { return listing{l.path + ".csv", l.filter}.at("", "") }

// at is the address with one more value; without one it is the list's beginning.
func (l listing) at(name, value string) string {
	query := url.Values{}
	for filter, values := range l.filter {
		query[filter] = values
	}
	if value != "" {
		query.Set(name, value)
	}
	if len(query) == 0 {
		return l.path
	}
	return l.path + "?" + query.Encode()
}

// pages leads to the beginning, when this is not it, and to what is older.
func (l listing) pages(name string, begun bool, older string) (p component.Pages) {
	if begun {
		p.Newer = l.at(name, "")
	}
	if older != "" {
		p.Older = l.at(name, older)
	}
	return p
}

// before reads the id behind which the page starts.
func (v *visit) before(prefix string) (store.Page, error) {
	p := store.Page{Limit: deskPage}
	if cursor := v.query("before"); cursor != "" {
		id, err := ids.Parse(prefix, cursor)
		if err != nil {
			return p, fault.New(fault.PathNotFound)
		}
		p.Before = id
	}
	return p, nil
}

// beforeSeq reads the number behind which a wallet's page starts.
func (v *visit) beforeSeq() (int64, error) {
	cursor := v.query("before")
	if cursor == "" {
		return 0, nil
	}
	seq, err := strconv.ParseInt(cursor, 10, 64)
	if err != nil || seq < 1 {
		return 0, fault.New(fault.PathNotFound)
	}
	return seq, nil
}

// lastID is the cursor behind a list that goes on.
func lastID[T any](list []T, more bool, prefix string, id func(T) ids.ID) string {
	if !more {
		return ""
	}
	return id(list[len(list)-1]).Format(prefix)
}

func (v *visit) walletPath(id ids.ID) string { return v.appPath("wallets", id.Format(ids.Wallet)) }

func (v *visit) transactionPath(id ids.ID) string {
	return v.appPath("transactions", id.Format(ids.Transaction))
}

func (v *visit) eventRow(e store.EventFound, whole bool) page.EventRow {
	row := page.EventRow{
		Href: v.transactionPath(e.TransactionID), EventID: e.EventID, FeatureKey: e.FeatureKey, EntityID: e.EntityID,
		Quantity: e.Quantity, Unit: e.Unit, Amount: e.Charge.Amount, CreditKey: e.CreditKey, OccurredAt: e.OccurredAt, CreatedAt: e.CreatedAt,
	}
	if whole {
		row.Identity, row.WalletHref = e.Identity, v.walletPath(e.WalletID)
	}
	if !e.DeduplicatedFrom.IsZero() {
		row.FirstHref = v.transactionPath(e.DeduplicatedFrom)
	}
	return row
}

func (v *visit) depositRow(d store.DepositFound, whole bool) page.DepositRow {
	row := page.DepositRow{
		Href: v.transactionPath(d.ID), ID: d.ID.Format(ids.Deposit), Kind: d.Kind, Amount: d.Amount, CreditKey: d.CreditKey,
		Source: sourceText(d.SourceKind, d.SourceID), CreatedAt: d.CreatedAt,
	}
	if d.IdempotencyKey != nil {
		row.IdempotencyKey = *d.IdempotencyKey
	}
	if whole {
		row.Identity, row.WalletHref = d.Identity, v.walletPath(d.WalletID)
	}
	return row
}

// sourceText names the payment behind an entry.
func sourceText(kind, id string) string {
	if id == "" {
		return ""
	}
	return kind + " " + id
}

func (v *visit) subscriptionRow(s store.SubscriptionFound, whole bool) page.SubscriptionRow {
	row := page.SubscriptionRow{
		ID: s.ID.Format(ids.Subscription), ProviderID: s.ProviderID, PlanName: s.PlanName, Status: s.Status, Period: s.Period,
		CancelAtPeriodEnd: s.CancelAtPeriodEnd, Downgrade: s.Downgrade, Pending: s.Pending, CreatedAt: s.CreatedAt, EndedAt: s.EndedAt,
	}
	if s.PlanKey != "" && v.may(tenancy.PlansRead) {
		row.PlanHref = v.appPath("plans", s.PlanKey, "view")
	}
	if whole {
		row.Identity, row.WalletHref = s.Identity, v.walletPath(s.WalletID)
	}
	return row
}
