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

// customerUsage splits usage by customer: the largest of the chosen measure each on their
// own, and all others together, without a wallet.
func (in usageInput) customerUsage(req *site.Request, credits []metering.Credit) (rollups.Usage, error) {
	q := in.Query
	q.ByFeature, q.ByKey = false, false
	all, err := readUsage(req, q)
	if err != nil {
		return all, err
	}
	largest, err := in.largestCustomers(req, creditOf(in.credit, credits, all), all)
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

// largestCustomers are those with most of the chosen measure, feature and credit.
func (in usageInput) largestCustomers(req *site.Request, credit string, all rollups.Usage) ([]rollups.Customer, error) {
	if in.show == string(rollups.Charged) && in.FeatureKey == "" {
		return mostCharged(req, in.Buckets, credit)
	}
	var of ids.ID // of all credits, for events
	for id, c := range all.Credits {
		if c.Key == credit && in.show != string(rollups.Events) {
			of = id
		}
	}
	list, ok, err := req.Site.Store.Rollups(req.Scope()).LargestWallets(req.Context, in.Query, rollups.Measure(in.show), of, maxTopCustomers)
	if !ok && err == nil {
		err = fault.Newf(fault.InvalidRequest, "There are too many customers to compare. Choose a shorter range, or credits charged for all features.")
	}
	return list, err
}

// mostCharged are those who were charged most of a credit in the months that the range has
// a part of. These are read by index, however many customers there are.
func mostCharged(req *site.Request, b rollup.Buckets, credit string) (customers []rollups.Customer, err error) {
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
	for _, w := range list[:min(len(list), maxTopCustomers)] {
		customers = append(customers, rollups.Customer{WalletID: w.WalletID, Identity: w.Identity})
	}
	return customers, nil
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
