package support

import (
	"cmp"
	"maps"
	"slices"

	"purser/fault"
	"purser/ids"
	"purser/metering"
	"purser/metering/rollup"
	"purser/store/rollups"
	"purser/web/site"
)

// customersPerRead is how many customers an export reads at once.
const customersPerRead = 200

// customerUsage splits usage by customer: those who were charged most in the months of the
// range each on their own, and all others together, without a wallet.
func (in usageInput) customerUsage(req *site.Request, credits []metering.Credit) (rollups.Usage, error) {
	q := in.Query
	q.ByFeature, q.ByKey = false, false
	all, err := readUsage(req, q)
	if err != nil {
		return all, err
	}
	largest, err := largestCustomers(req, in.Buckets, creditOf(in.credit, credits, all))
	if err != nil {
		return all, err
	}
	named := rollups.Usage{Until: all.Until, Credits: all.Credits, Identities: map[ids.ID]string{}}
	for _, w := range largest {
		q.Identity = w.Identity
		own, err := readUsage(req, q)
		if fault.Is(err, fault.WalletNotFound) { // renamed or erased since
			continue
		}
		if err != nil {
			return all, err
		}
		named.Identities[w.WalletID] = w.Identity
		for _, r := range own.Rows {
			r.WalletID = w.WalletID
			named.Rows = append(named.Rows, r)
		}
	}
	named.Rows = append(named.Rows, othersOf(all.Rows, named.Rows)...)
	return named, nil
}

// largestCustomers are those who were charged most of a credit in the months that the
// range has a part of.
func largestCustomers(req *site.Request, b rollup.Buckets, credit string) ([]rollups.TopWallet, error) {
	charged := map[ids.ID]rollups.TopWallet{}
	for month := metering.MonthOf(b.From()); month.Start < min(b.End, req.Now()); month = metering.MonthOf(month.End) {
		top, err := req.Site.Store.Rollups(req.Scope()).Top(req.Context, month.Start, maxTopCustomers)
		if err != nil {
			return nil, err
		}
		for _, w := range top {
			if w.Credit == credit {
				w.Charged = w.Charged.Join(charged[w.WalletID].Charged)
				charged[w.WalletID] = w
			}
		}
	}
	list := slices.SortedFunc(maps.Values(charged), func(a, b rollups.TopWallet) int {
		return cmp.Or(compareTotals(b.Charged, a.Charged), slices.Compare(a.WalletID[:], b.WalletID[:]))
	})
	return list[:min(len(list), maxTopCustomers)], nil
}

func compareTotals(a, b metering.Total) int {
	switch {
	case a == b:
		return 0
	case a.Minus(b).IsZero():
		return -1
	default:
		return 1
	}
}

// othersOf is what is left of all rows without those of customers.
func othersOf(all, customers []rollups.Row) (rest []rollups.Row) {
	type place struct {
		start  int64
		credit ids.ID
	}
	named := map[place]rollup.Sums{}
	for _, r := range customers {
		at := place{r.Start, r.CreditID}
		named[at] = named[at].Add(r.Sums)
	}
	for _, r := range all {
		if r.Sums = r.Sums.Without(named[place{r.Start, r.CreditID}]); r.Events > 0 {
			rest = append(rest, r)
		}
	}
	return rest
}

// exportedCustomers are the rows of an export by customer, at most one more than it has.
func (in usageInput) exportedCustomers(req *site.Request) (all rollups.Usage, err error) {
	app := req.Site.Store.Rollups(req.Scope())
	var from rollups.Row
	for {
		read, next, err := app.WalletUsage(req.Context, in.Query, from, customersPerRead, maxExport+1-len(all.Rows))
		if err != nil {
			return all, err
		}
		read.Rows = append(all.Rows, read.Rows...)
		read.Join(all)
		if all = read; next.IsZero() || len(all.Rows) > maxExport {
			return all, nil
		}
		from = rollups.Row{WalletID: next}
	}
}
