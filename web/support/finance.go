package support

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"purser/metering"
	"purser/store/reports"
	"purser/store/rollups"
	"purser/views/component"
	supportpage "purser/views/page/support"
)

// overviewMoney is the revenue and liability of the overview's period, if they were read.
func overviewMoney(f *rollups.Finance, o reports.Overview) *supportpage.Money {
	if f == nil {
		return nil
	}
	money := &supportpage.Money{Credits: creditRows(*f, o.Now.Charged)}
	for _, l := range f.Liability {
		money.At = max(money.At, l.At)
	}
	money.Revenue, money.Revenues = revenueOf(f.Revenue, o)
	return money
}

// revenueOf sums payments by currency, and charts the one with most.
func revenueOf(payments []rollups.Revenue, o reports.Overview) (series component.Series, rows []supportpage.RevenueRow) {
	type sums struct{ plans, topUps, returned int64 }
	byCurrency := map[string]sums{}
	for _, p := range payments {
		s := byCurrency[p.Currency]
		if s.returned += p.ReturnedCents; p.TopUp {
			s.topUps += p.AmountCents
		} else {
			s.plans += p.AmountCents
		}
		byCurrency[p.Currency] = s
	}
	currencies := slices.SortedFunc(maps.Keys(byCurrency), func(a, b string) int {
		x, y := byCurrency[a], byCurrency[b]
		return cmp.Or(cmp.Compare(y.plans+y.topUps, x.plans+x.topUps), cmp.Compare(a, b))
	})
	for _, currency := range currencies {
		s := byCurrency[currency]
		rows = append(rows, supportpage.RevenueRow{
			Total: component.MoneyText(s.plans+s.topUps, currency), Plans: component.MoneyText(s.plans, currency),
			TopUps: component.MoneyText(s.topUps, currency), Returned: component.MoneyText(s.returned, currency),
		})
	}
	if len(currencies) == 0 {
		return series, rows
	}
	main := currencies[0]
	text := func(cents uint64) string { return component.MoneyText(int64(cents), main) }
	series = component.Series{ID: "revenue-chart", Title: "Revenue by day", Unit: main, StepName: "Day", Parts: []string{"Plans", "Top-ups"}, Axis: func(cents uint64) string {
		return strings.TrimSuffix(strings.TrimSuffix(text(cents), " "+strings.ToUpper(main)), ".00")
	}}
	for _, day := range o.Days {
		var parts [2]uint64
		for _, p := range payments {
			if p.Day == day.Day && p.Currency == main {
				n := 0
				if p.TopUp {
					n = 1
				}
				parts[n] += uint64(p.AmountCents)
			}
		}
		total := parts[0] + parts[1]
		series.Bars = append(series.Bars, component.Bar{
			Label: time.UnixMilli(day.Day).UTC().Format("2 Jan"), Value: total, Text: text(total),
			Parts: []component.Slice{{Value: parts[0], Text: text(parts[0])}, {Value: parts[1], Text: text(parts[1])}},
		})
	}
	return series, rows
}

// creditRows has one row for each credit that moved or is held.
func creditRows(f rollups.Finance, charged []reports.CreditTotal) (rows []supportpage.CreditRow) {
	zero := rounded(metering.Total{})
	row := func(credit string) *supportpage.CreditRow {
		for i := range rows {
			if rows[i].Credit == credit {
				return &rows[i]
			}
		}
		rows = append(rows, supportpage.CreditRow{Credit: credit, Sold: zero, Granted: zero, Deposited: zero, Refunded: zero, Charged: zero, Held: zero, Debt: zero})
		return &rows[len(rows)-1]
	}
	for _, l := range f.Liability {
		r := row(l.Credit)
		r.Held, r.Debt = rounded(l.Held), rounded(l.Debt)
	}
	taken, back := map[string]metering.Total{}, map[string]metering.Total{} // a won dispute gives back
	for _, flow := range f.Flows {
		switch r := row(flow.Credit); flow.Kind {
		case metering.EntryTopUp:
			r.Sold = rounded(flow.Came)
		case metering.EntryGrant:
			r.Granted = rounded(flow.Came)
		case metering.EntryDeposit:
			r.Deposited = rounded(flow.Came)
		case metering.EntryRefund, metering.EntryDispute:
			taken[r.Credit], back[r.Credit] = taken[r.Credit].Join(flow.Taken), back[r.Credit].Join(flow.Came)
			r.Refunded = rounded(taken[r.Credit].Minus(back[r.Credit]))
		}
	}
	for _, c := range charged {
		row(c.CreditKey).Charged = rounded(c.Total)
	}
	slices.SortFunc(rows, func(a, b supportpage.CreditRow) int { return cmp.Compare(a.Credit, b.Credit) })
	return rows
}

func rounded(t metering.Total) supportpage.RoundedAmount {
	return supportpage.RoundedAmount{Text: component.RoundedTotalText(t), Exact: component.TotalText(t)}
}
