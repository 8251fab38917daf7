package web

import (
	"fmt"
	"strconv"
	"time"

	"purser/ids"
	"purser/metering"
	"purser/store"
)

const (
	// maxExport is the most that one file takes: more than people can read, and little
	// enough to be made in memory. What is left out is older, and the file's name says so.
	maxExport = 10_000
	// exportsAtOnce bounds that memory: a file takes up to some 40 MB.
	exportsAtOnce = 2
	// Events are gathered in portions of this, each a question of its own: a filter that
	// hardly anything passes has to stop somewhere.
	exportPortion  = 500
	exportPortions = 40
)

// export makes files a few at a time. Who comes then waits for as long as they like.
func (s *Site) export(file func(*visit) (answer, error)) func(*visit) (answer, error) {
	return func(v *visit) (answer, error) {
		select {
		case s.exports <- struct{}{}:
			defer func() { <-s.exports }()
			return file(v)
		case <-v.context.Done():
			return answer{}, v.context.Err()
		}
	}
}

// fileName tells what is in a file, and that there is more than it holds.
func (v *visit) fileName(of string, more bool) string {
	if more {
		of += fmt.Sprintf("-newest-%d", maxExport)
	}
	return v.app.Slug + "-" + of + ".csv"
}

// moment is a time as spreadsheets read it; one that is not there is empty.
func moment(at int64) string {
	if at == 0 {
		return ""
	}
	return time.UnixMilli(at).UTC().Format("2006-01-02T15:04:05.000Z")
}

func (s *Site) depositsExport(v *visit) (answer, error) {
	q, problems := v.depositQuery()
	if len(problems) > 0 {
		return redirect(v.listing(v.appPath("deposits"), "kind", "credit", "from", "to").at("", "")), nil
	}
	q.Limit = maxExport
	found, more, err := v.tenant().FindDeposits(v.context, q)
	if err != nil {
		return answer{}, err
	}
	var rows [][]string
	for _, d := range found {
		key := ""
		if d.IdempotencyKey != nil {
			key = *d.IdempotencyKey
		}
		rows = append(rows, []string{
			d.ID.Format(ids.Deposit), moment(d.CreatedAt), d.Identity, string(d.Kind), d.CreditKey,
			d.Amount.Credits(), d.Amount.String(), key, sourceText(d.SourceKind, d.SourceID),
		})
	}
	return csvFile(v.fileName("deposits", more), []string{
		"id", "time", "identity", "kind", "credit", "credits", "nanocredits", "idempotency key", "payment",
	}, rows), nil
}

func (s *Site) eventsExport(v *visit) (answer, error) {
	q := v.eventQuery()
	q.Limit = exportPortion
	var rows [][]string
	more := true
	for range exportPortions {
		found, next, err := v.tenant().Events(v.context, q)
		if err != nil {
			return answer{}, err
		}
		for _, e := range found {
			rows = append(rows, []string{
				e.TransactionID.Format(ids.Transaction), e.EventID, moment(e.CreatedAt), moment(e.OccurredAt), e.Identity, e.FeatureKey,
				strconv.FormatInt(e.Quantity, 10), e.EntityID, strconv.FormatBool(!e.DeduplicatedFrom.IsZero()), e.CreditKey,
				e.Charge.Amount.Credits(), e.Charge.Amount.String(), e.BalanceAfter.String(), e.KeyName,
			})
		}
		if more = next != nil; !more || len(rows) >= maxExport {
			break
		}
		q.Page = *next
	}
	return csvFile(v.fileName("events", more), []string{
		"transaction", "event", "time", "occurred", "identity", "feature", "quantity", "entity", "deduplicated", "credit",
		"credits", "nanocredits", "nanocredits after", "key",
	}, rows), nil
}

func (s *Site) subscriptionsExport(v *visit) (answer, error) {
	q := v.subscriptionQuery()
	q.Limit = maxExport
	found, more, err := v.tenant().FindSubscriptions(v.context, q)
	if err != nil {
		return answer{}, err
	}
	var rows [][]string
	for _, f := range found {
		rows = append(rows, []string{
			f.ID.Format(ids.Subscription), f.Identity, f.PlanKey, string(f.Status), moment(f.Period.Start), moment(f.Period.End),
			strconv.FormatBool(f.CancelAtPeriodEnd), moment(f.CreatedAt), moment(f.EndedAt), f.ProviderID,
		})
	}
	return csvFile(v.fileName("subscriptions", more), []string{
		"id", "identity", "plan", "status", "period start", "period end", "ends with its period", "created", "ended", "provider id",
	}, rows), nil
}

func (s *Site) checkoutsExport(v *visit) (answer, error) {
	q := v.checkoutQuery()
	q.Limit = maxExport
	found, more, err := v.tenant().Checkouts(v.context, q)
	if err != nil {
		return answer{}, err
	}
	var rows [][]string
	for _, c := range found {
		nanocredits := ""
		if c.CreditKey != "" {
			nanocredits = c.Amount.String()
		}
		rows = append(rows, []string{
			c.ID.Format(ids.Checkout), string(c.Kind), c.Identity, c.PlanKey, c.CreditKey, nanocredits, strconv.FormatInt(c.AmountCents, 10), c.Currency,
			c.State, moment(c.CreatedAt), moment(c.ExpiresAt), c.SessionID,
		})
	}
	return csvFile(v.fileName("checkouts", more), []string{
		"id", "kind", "identity", "plan", "credit", "nanocredits", "smallest units", "currency", "state", "created", "expires", "provider id",
	}, rows), nil
}

// signedText is what an entry adds to the balance less the debt.
func signedText(d metering.Delta) string {
	if d.Out && d.Amount > 0 {
		return "-" + d.Amount.String()
	}
	return d.Amount.String()
}

func (s *Site) journalExport(v *visit) (answer, error) {
	_, w, err := v.walletHead("journal")
	if err != nil {
		return answer{}, err
	}
	lines, _, more, err := v.tenant().Journal(v.context, store.JournalPage{WalletID: w.ID, Limit: maxExport})
	if err != nil {
		return answer{}, err
	}
	var rows [][]string
	for _, l := range lines {
		rows = append(rows, []string{
			strconv.FormatInt(l.Seq, 10), l.ID.Format(ids.Transaction), moment(l.CreatedAt), string(l.Kind), aboutEntry(l), l.CreditKey,
			signedText(l.Delta), l.BalanceAfter.String(), l.DebtAfter.String(), l.EventID, l.EntityID,
		})
	}
	return csvFile(v.fileName("journal", more), []string{
		"number", "transaction", "time", "kind", "about", "credit", "nanocredits", "balance after", "debt after", "event", "entity",
	}, rows), nil
}
