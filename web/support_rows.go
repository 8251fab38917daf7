package web

import (
	"net/url"
	"strconv"

	"purser/fault"
	"purser/ids"
	"purser/store"
	"purser/store/reports"
	"purser/tenancy"
	"purser/views/component"
	supportpage "purser/views/page/support"
)

// supportPageSize is the page size of support lists.
const supportPageSize = 50

// listing is the URL of a list with its active filters.
type listing struct {
	path   string
	filter url.Values
}

// listing reads the named filters from the query.
func (req *request) listing(path string, filters ...string) listing {
	l := listing{path: path, filter: url.Values{}}
	for _, name := range filters {
		if value := req.query(name); value != "" {
			l.filter.Set(name, value)
		}
	}
	return l
}

// file is the URL of the list's CSV export.
func (l listing) file() string { return listing{l.path + ".csv", l.filter}.at("", "") }

// at is the URL with one more parameter, or of the first page if the value is empty.
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

// pages links to the first page, unless this is it, and to older rows.
func (l listing) pages(name string, begun bool, older string) (p component.Pages) {
	if begun {
		p.Newer = l.at(name, "")
	}
	if older != "" {
		p.Older = l.at(name, older)
	}
	return p
}

// before reads the id that the page starts after.
func (req *request) before(prefix string) (store.Page, error) {
	p := store.Page{Limit: supportPageSize}
	if cursor := req.query("before"); cursor != "" {
		id, err := ids.Parse(prefix, cursor)
		if err != nil {
			return p, fault.New(fault.PathNotFound)
		}
		p.Before = id
	}
	return p, nil
}

// beforeSeq reads the sequence number that a wallet's page starts after.
func (req *request) beforeSeq() (int64, error) {
	cursor := req.query("before")
	if cursor == "" {
		return 0, nil
	}
	seq, err := strconv.ParseInt(cursor, 10, 64)
	if err != nil || seq < 1 {
		return 0, fault.New(fault.PathNotFound)
	}
	return seq, nil
}

// lastID is the cursor of the next page, or "".
func lastID[T any](list []T, more bool, prefix string, id func(T) ids.ID) string {
	if !more {
		return ""
	}
	return id(list[len(list)-1]).Format(prefix)
}

func (req *request) walletPath(id ids.ID) string {
	return req.appPath("wallets", id.Format(ids.Wallet))
}

func (req *request) transactionPath(id ids.ID) string {
	return req.appPath("transactions", id.Format(ids.Transaction))
}

func newEventRow(req *request, e reports.EventFound, whole bool) supportpage.EventRow {
	row := supportpage.EventRow{
		Href: req.transactionPath(e.TransactionID), EventID: e.EventID, FeatureKey: e.FeatureKey, EntityID: e.EntityID,
		Quantity: e.Quantity, Unit: e.Unit, Amount: e.Charge.Amount, CreditKey: e.CreditKey, OccurredAt: e.OccurredAt, CreatedAt: e.CreatedAt,
	}
	if whole {
		row.Identity, row.WalletHref = e.Identity, req.walletPath(e.WalletID)
	}
	if !e.DeduplicatedFrom.IsZero() {
		row.FirstHref = req.transactionPath(e.DeduplicatedFrom)
	}
	return row
}

func newDepositRow(req *request, d reports.DepositFound, whole bool) supportpage.DepositRow {
	row := supportpage.DepositRow{
		Href: req.transactionPath(d.ID), ID: d.ID.Format(ids.Deposit), Kind: d.Kind, Amount: d.Amount, CreditKey: d.CreditKey,
		Source: sourceText(d.SourceKind, d.SourceID), CreatedAt: d.CreatedAt,
	}
	if d.IdempotencyKey != nil {
		row.IdempotencyKey = *d.IdempotencyKey
	}
	if whole {
		row.Identity, row.WalletHref = d.Identity, req.walletPath(d.WalletID)
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

func newSubscriptionRow(req *request, s reports.SubscriptionFound, whole bool) supportpage.SubscriptionRow {
	row := supportpage.SubscriptionRow{
		ID: s.ID.Format(ids.Subscription), ProviderID: s.ProviderID, PlanName: s.PlanName, Status: s.Status, Period: s.Period,
		CancelAtPeriodEnd: s.CancelAtPeriodEnd, Downgrade: s.Downgrade, Pending: s.Pending, CreatedAt: s.CreatedAt, EndedAt: s.EndedAt,
	}
	if s.PlanKey != "" && req.may(tenancy.PlansRead) {
		row.PlanHref = req.appPath("plans", s.PlanKey, "view")
	}
	if whole {
		row.Identity, row.WalletHref = s.Identity, req.walletPath(s.WalletID)
	}
	return row
}
