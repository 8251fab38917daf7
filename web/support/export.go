package support

import (
	"cmp"
	"context"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode"

	"purser/fault"
	"purser/ids"
	"purser/metering"
	"purser/store/reports"
	"purser/tenancy"
	"purser/web/site"
)

const (
	// maxExport is the most rows of one file: little enough to be built in memory. The
	// name of the file says which it has if others were left out.
	maxExport = 10_000
	// Events are read in batches, with a limit on their number: a filter that matches
	// few events must not scan without end.
	exportTimeout  = 10 * time.Minute // of everything about a customer, which is streamed
	exportPortion  = 500
	exportPortions = 40
)

// exportName names the application and whether it is a live one, the content and the day.
func exportName(req *site.Request, of string) string {
	mode := "test"
	if req.App.Live {
		mode = "live"
	}
	return req.App.Slug + "-" + mode + "-" + of + "-" + time.UnixMilli(req.Now()).In(req.Zone()).Format(dayLayout) + ".csv"
}

// end is the end of a list by age that its first rows are from.
func end(oldest bool) string {
	if oldest {
		return "oldest"
	}
	return "newest"
}

// maxNamedIdentity is how much of an identity the name of a file has.
const maxNamedIdentity = 40

// fileIdentity is an identity as far as names of files have it on all systems.
func fileIdentity(identity string) string {
	name := strings.Trim(strings.Map(func(r rune) rune {
		if r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("-_.@", r)) {
			return r
		}
		return '-'
	}, identity), "-.")
	return name[:min(len(name), maxNamedIdentity)]
}

func (s *Pages) depositsExport(req *site.Request) (site.Response, error) {
	q, problems := depositQuery(req)
	if len(problems) > 0 {
		return site.Redirect(req.Listing(req.AppPath("deposits"), depositFilters...).At("", "")), nil
	}
	q.Limit = maxExport
	found, more, err := req.Reports().FindDeposits(req.Context, q)
	if err != nil {
		return site.Response{}, err
	}
	var rows [][]string
	for _, d := range found {
		key := ""
		if d.IdempotencyKey != nil {
			key = *d.IdempotencyKey
		}
		rows = append(rows, []string{
			d.ID.Format(ids.Deposit), site.Timestamp(d.CreatedAt), d.Identity, string(d.Kind), d.CreditKey,
			d.Amount.Credits(), d.Amount.String(), key, sourceText(d.SourceKind, d.SourceID),
		})
	}
	return site.CSVFile(exportName(req, "deposits"+site.Part(end(q.Oldest), len(rows), more)), []string{
		"id", "time", "identity", "kind", "credit", "credits", "nanocredits", "idempotency key", "payment",
	}, rows), nil
}

func (s *Pages) eventsExport(req *site.Request) (site.Response, error) {
	q, problems := eventQuery(req)
	if len(problems) > 0 {
		return site.Redirect(req.Listing(req.AppPath("events"), eventFilters...).At("", "")), nil
	}
	q.Limit = exportPortion
	var rows [][]string
	more := true
	for range exportPortions {
		found, next, err := findEvents(req, &q)
		if err != nil {
			return site.Response{}, err
		}
		for _, e := range found {
			rows = append(rows, []string{
				e.TransactionID.Format(ids.Transaction), e.EventID, site.Timestamp(e.CreatedAt), site.Timestamp(e.OccurredAt), e.Identity, e.FeatureKey,
				strconv.FormatInt(e.Quantity, 10), e.EntityID, strconv.FormatBool(!e.DeduplicatedFrom.IsZero()), e.CreditKey,
				e.Charge.Amount.Credits(), e.Charge.Amount.String(), e.BalanceAfter.String(), e.KeyName, string(e.Properties),
			})
		}
		if more = next != ""; !more || len(rows) >= maxExport {
			break
		}
	}
	of := "events"
	if until, err := packedUntil(req, q); err != nil {
		return site.Response{}, err
	} else if until > 0 {
		of += "-without-packed-months"
	}
	return site.CSVFile(exportName(req, of+site.Part("newest", len(rows), more)), []string{
		"transaction", "event", "time", "occurred", "identity", "feature", "quantity", "entity", "deduplicated", "credit",
		"credits", "nanocredits", "nanocredits after", "key", "properties",
	}, rows), nil
}

func (s *Pages) subscriptionsExport(req *site.Request) (site.Response, error) {
	q, _, err := subscriptionQuery(req)
	if err != nil {
		return site.Response{}, err
	}
	q.Limit = maxExport
	found, more, err := req.Reports().FindSubscriptions(req.Context, q)
	if err != nil {
		return site.Response{}, err
	}
	var rows [][]string
	for _, f := range found {
		rows = append(rows, []string{
			f.ID.Format(ids.Subscription), f.Identity, f.PlanKey, string(f.Status), site.Timestamp(f.Period.Start), site.Timestamp(f.Period.End),
			strconv.FormatBool(f.CancelAtPeriodEnd), site.Timestamp(f.CreatedAt), site.Timestamp(f.EndedAt), f.ProviderID,
		})
	}
	return site.CSVFile(exportName(req, "subscriptions"+site.Part(end(q.Oldest), len(rows), more)), []string{
		"id", "identity", "plan", "status", "period start", "period end", "ends with its period", "created", "ended", "provider id",
	}, rows), nil
}

func (s *Pages) checkoutsExport(req *site.Request) (site.Response, error) {
	q := checkoutQuery(req)
	q.Limit = maxExport
	found, more, err := req.Payments().Checkouts(req.Context, q)
	if err != nil {
		return site.Response{}, err
	}
	var rows [][]string
	for _, c := range found {
		nanocredits, credits := "", ""
		if c.CreditKey != "" {
			nanocredits, credits = c.Amount.String(), c.Amount.Credits()
		}
		rows = append(rows, []string{
			c.ID.Format(ids.Checkout), string(c.Kind), c.Identity, c.PlanKey, c.CreditKey, nanocredits, strconv.FormatInt(c.AmountCents, 10), c.Currency,
			c.State, site.Timestamp(c.CreatedAt), site.Timestamp(c.ExpiresAt), c.SessionID, credits,
		})
	}
	return site.CSVFile(exportName(req, "checkouts"+site.Part("newest", len(rows), more)), []string{
		"id", "kind", "identity", "plan", "credit", "nanocredits", "smallest units", "currency", "state", "created", "expires", "provider id", "credits",
	}, rows), nil
}

// signed is an amount with the sign of an entry's change: balance less debt.
func signed(d metering.Delta, amount string) string {
	if d.Out && d.Amount > 0 {
		return "-" + amount
	}
	return amount
}

// journalColumns are the columns of a journal and of a statement.
var journalColumns = []string{
	"number", "transaction", "time", "kind", "about", "credit", "nanocredits", "balance after", "debt after", "event", "entity", "other identity",
	"credits", "credits after", "debt after in credits",
}

func journalCells(l reports.JournalLine) []string {
	return []string{
		strconv.FormatInt(l.Seq, 10), l.ID.Format(l.Kind.IDPrefix()), site.Timestamp(l.CreatedAt), string(l.Kind), entryLabel(l), l.CreditKey,
		signed(l.Delta, l.Delta.Amount.String()), l.BalanceAfter.String(), l.DebtAfter.String(), l.EventID, l.EntityID, otherIdentity(l),
		signed(l.Delta, l.Delta.Amount.Credits()), l.BalanceAfter.Credits(), l.DebtAfter.Credits(),
	}
}

func (s *Pages) journalExport(req *site.Request) (site.Response, error) {
	_, w, err := s.walletHead(req, "journal")
	if err != nil {
		return site.Response{}, err
	}
	owner := cmp.Or(fileIdentity(w.Identity), w.ID.Format(ids.Wallet))
	if month := req.Query("month"); month != "" {
		return statement(req, w.Identity, owner, month)
	}
	lines, _, more, err := req.Reports().Journal(req.Context, reports.JournalPage{WalletID: w.ID, Limit: maxExport})
	if err != nil {
		return site.Response{}, err
	}
	var rows [][]string
	for _, l := range lines {
		rows = append(rows, journalCells(l))
	}
	return site.CSVFile(exportName(req, "journal-"+owner+site.Part("newest", len(rows), more)), journalColumns, rows), nil
}

// otherIdentity is the other side of a transfer.
func otherIdentity(l reports.JournalLine) string {
	if l.Transfer == nil {
		return ""
	}
	return l.Transfer.Identity
}

// downloadWallet streams everything about a customer. It shows more than the journal, so
// it requires what the API requires.
func (s *Pages) downloadWallet(req *site.Request, id ids.ID) (site.Response, error) {
	if err := req.Require(tenancy.WalletsWrite); err != nil {
		return site.Response{}, err
	}
	w, err := req.Reports().WalletByID(req.Context, id)
	if err != nil {
		return site.Response{}, err
	}
	if s.exportWallet == nil {
		return site.Response{}, fault.New(fault.PathNotFound)
	}
	// The page's deadline is too short for it, and ends with the handler.
	return site.Stream(req.App.Slug+"-"+id.Format(ids.Wallet)+".json", "application/json", func(begin func() io.Writer) error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(req.Context), exportTimeout)
		defer cancel()
		return s.exportWallet(ctx, req.Scope(), w.Identity, begin, func() error { return req.CheckAccess(ctx, tenancy.WalletsWrite) })
	}), nil
}
