package support

import (
	"maps"
	"slices"
	"time"

	"purser/fault"
	"purser/metering"
	"purser/store/reports"
	"purser/views/component"
	"purser/web/site"
)

const (
	monthLayout = "2006-01"
	// maxStatementMonths is how many months a page offers.
	maxStatementMonths = 24
)

// statementMonths are the months since a wallet was created, in the viewer's zone, the
// present one first.
func statementMonths(req *site.Request, created int64) (options []component.Option) {
	now := time.UnixMilli(req.Now()).In(req.Zone())
	for i := range maxStatementMonths {
		first := time.Date(now.Year(), now.Month()-time.Month(i), 1, 0, 0, 0, 0, req.Zone())
		options = append(options, component.Option{Value: first.Format(monthLayout), Text: first.Format("January 2006")})
		if first.UnixMilli() <= created {
			break
		}
	}
	return options
}

// statement is the month of a wallet in the viewer's zone, newest first as its journal:
// the closing balances, the entries between them, and the opening balances. Entries may come while it is
// read, so the closing balances are those after the entries that it has.
func statement(req *site.Request, identity, owner, month string) (site.Response, error) {
	first, err := time.ParseInLocation(monthLayout, month, req.Zone())
	if err != nil {
		return site.Response{}, fault.Newf(fault.InvalidRequest, "Enter a month, such as 2026-10.")
	}
	from, to := first.UnixMilli(), first.AddDate(0, 1, 0).UnixMilli()
	var rows [][]string
	closing, moment := map[string]metering.Balance{}, min(to-1, req.Now())
	q := reports.HistoryQuery{Identity: identity, From: from, To: to, Whole: true, Limit: exportPortion}
	entries, more := 0, true
	for more && entries < maxExport {
		lines, next, err := req.Reports().History(req.Context, q)
		if err != nil {
			return site.Response{}, err
		}
		for _, l := range lines {
			rows = append(rows, journalCells(l))
			if _, newer := closing[l.CreditKey]; !newer {
				closing[l.CreditKey] = metering.Balance{CreditKey: l.CreditKey, Amount: l.BalanceAfter, Debt: l.DebtAfter}
			}
			moment = max(moment, l.CreatedAt)
		}
		entries += len(lines)
		q.Position, more = next, next.Seq != 0
	}
	opening, err := req.Reports().BalancesAt(req.Context, identity, from-1)
	if err != nil {
		return site.Response{}, err
	}
	rest := opening // of credits without entries
	if more {
		if rest, err = req.Reports().BalancesAt(req.Context, identity, moment); err != nil {
			return site.Response{}, err
		}
	}
	for _, b := range rest {
		if _, moved := closing[b.CreditKey]; !moved {
			closing[b.CreditKey] = b
		}
	}
	var all [][]string
	for _, key := range slices.Sorted(maps.Keys(closing)) {
		all = append(all, balanceCells(closing[key], "closing balance", moment))
	}
	all = append(all, rows...)
	for _, b := range opening {
		all = append(all, balanceCells(b, "opening balance", from-1))
	}
	return site.CSVFile(exportName(req, "statement-"+owner+"-"+first.Format(monthLayout)+site.Part("newest", entries, more)), journalColumns, all), nil
}

func balanceCells(b metering.Balance, kind string, moment int64) []string {
	return []string{
		"", "", site.Timestamp(moment), kind, "", b.CreditKey, "", b.Amount.String(), b.Debt.String(), "", "", "",
		"", b.Amount.Credits(), b.Debt.Credits(),
	}
}
