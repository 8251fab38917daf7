package api

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"time"

	"purser/fault"
	"purser/ids"
	"purser/metering"
	"purser/store/payments"
	"purser/store/reports"
	"purser/tenancy"
)

const (
	// exportTimeout bounds an export: about a million entries.
	exportTimeout = 10 * time.Minute
	// exportsAtOnce bounds the exports of a node, each of which uses a connection of the
	// database much of its time. One organization gets half of them. Others are refused.
	exportsAtOnce = 2
)

type exportHeadReply struct {
	Identity       string                 `json:"identity"`
	ExportedAt     int64                  `json:"exportedAt"`
	Wallet         walletReply            `json:"wallet"`
	Subscription   *subscriptionReply     `json:"subscription"`
	Subscriptions  []exportedSubscription `json:"subscriptions"`
	Customers      []exportedCustomer     `json:"customers"`
	FailedRequests []exportedRequest      `json:"failedRequests"`
	Denials        []exportedDenial       `json:"denials"`
}

type exportedSubscription struct {
	ID          string `json:"id"`
	PlanKey     string `json:"planKey,omitzero"`
	Status      string `json:"status"`
	PeriodStart int64  `json:"periodStart"`
	PeriodEnd   int64  `json:"periodEnd"`
	ProviderID  string `json:"providerId,omitzero"`
	CreatedAt   int64  `json:"createdAt"`
	EndedAt     int64  `json:"endedAt,omitzero"`
}

type exportedCustomer struct {
	AccountID  string `json:"accountId"`
	CustomerID string `json:"customerId"`
	CreatedAt  int64  `json:"createdAt"`
}

type exportedRequest struct {
	ID      string     `json:"id"`
	At      int64      `json:"at"`
	Method  string     `json:"method"`
	Route   string     `json:"route"`
	Status  int        `json:"status"`
	Error   fault.Code `json:"error,omitzero"`
	Feature string     `json:"feature,omitzero"`
}

type exportedDenial struct {
	ID                 string     `json:"id"`
	At                 int64      `json:"at"`
	Reason             fault.Code `json:"reason"`
	Feature            string     `json:"feature"`
	EventID            string     `json:"eventId,omitzero"` // none for a check
	EntityID           string     `json:"entityId,omitzero"`
	Quantity           int64      `json:"quantity"`
	CreditKey          string     `json:"creditKey"`
	AmountNanocredits  string     `json:"amountNanocredits"`
	BalanceNanocredits string     `json:"balanceNanocredits"`
	DebtNanocredits    string     `json:"debtNanocredits"`
}

type exportedCheckout struct {
	ID                string `json:"id"`
	Kind              string `json:"kind"`
	State             string `json:"state"`
	PlanKey           string `json:"planKey,omitzero"`
	CreditKey         string `json:"creditKey,omitzero"`
	AmountNanocredits string `json:"amountNanocredits,omitzero"`
	AmountCents       int64  `json:"amountCents"`
	Currency          string `json:"currency"`
	SessionID         string `json:"sessionId,omitzero"`
	CreatedAt         int64  `json:"createdAt"`
}

type exportedPayment struct {
	Kind          string `json:"kind"`
	ID            string `json:"id"`
	AmountCents   int64  `json:"amountCents"`
	Currency      string `json:"currency,omitzero"` // none for a free period
	RefundedCents int64  `json:"refundedCents,omitzero"`
	DisputedCents int64  `json:"disputedCents,omitzero"`
	CreatedAt     int64  `json:"createdAt"`
}

// exportedEntry is an entry of the journal with everything that explains it.
type exportedEntry struct {
	entryReply
	Event     *recordedEventReply `json:"event,omitzero"` // in place of the entry's short form
	Reason    string              `json:"reason,omitzero"`
	PaymentID string              `json:"paymentId,omitzero"`
}

func (s *Server) exportWallet(c *call) (reply, error) {
	return reply{stream: func(begin func() io.Writer) error {
		return s.ExportWallet(c.ctx, c.scope, c.path["identity"], begin, func() error { return s.authenticateAgain(c.ctx, c) })
	}}, nil
}

// ExportWallet writes everything about one identity as a JSON object, in parts of bounded
// size. Entries that are made meanwhile are left out. A wallet that is renamed meanwhile is
// exported whole; one that is erased, only in part. It calls begin once nothing can
// refuse the export, and admit before each part. The export ends with the part at hand
// when admit fails or the server stops.
func (s *Server) ExportWallet(ctx context.Context, scope tenancy.Scope, identity string, begin func() io.Writer, admit func() error) error {
	if err := s.exports.Enter(scope.OrgID, 1); err != nil {
		return err
	}
	defer s.exports.Leave(scope.OrgID, 1)
	if s.isStopped() {
		return fault.New(fault.Overloaded)
	}
	app, read := s.store.App(scope), s.store.Reports(scope)
	head, err := read.ExportHead(ctx, identity)
	if err != nil {
		return err
	}
	offset, err := app.ClockOffset(ctx)
	if err != nil {
		return err
	}
	shown := exportHeadReply{
		Identity: identity, ExportedAt: s.now() + offset, Wallet: showWallet(head.Wallet),
		Subscriptions: showAll(head.Subscriptions, showExportedSubscription), Customers: showAll(head.Customers, showExportedCustomer),
		FailedRequests: showAll(head.Failures, showExportedRequest), Denials: showAll(head.Denials, showExportedDenial),
	}
	sold := s.store.Payments(scope)
	subscription, err := sold.SubscriptionOfWallet(ctx, head.Wallet.ID)
	switch {
	case err == nil:
		subscription.Pending = subscription.PendingAt(shown.ExportedAt)
		current := showSubscription(subscription)
		shown.Subscription = &current
	case !fault.Is(err, fault.SubscriptionNotFound):
		return err
	}
	w, err := newExportWriter(begin(), shown, func() error {
		if s.isStopped() {
			return errServerStops
		}
		return admit()
	})
	if err != nil {
		return err
	}
	if err := exportCheckouts(ctx, w, sold, head.Wallet.ID); err != nil {
		return err
	}
	if err := exportPayments(ctx, w, read, head.Wallet.ID); err != nil {
		return err
	}
	if err := s.exportEntries(ctx, w, scope, head); err != nil {
		return err
	}
	last, err := read.WalletByID(ctx, head.Wallet.ID)
	if err == nil && last.Wallet.Identity != identity && metering.IsTombstone(last.Wallet.Identity) {
		err = errErased
	}
	if err != nil {
		return err
	}
	return w.end()
}

func exportCheckouts(ctx context.Context, w *exportWriter, sold payments.App, walletID ids.ID) error {
	w.begin("checkouts")
	page := payments.CheckoutPage{WalletID: walletID}
	page.Limit = reports.ExportRange
	for more := true; more; {
		list, rest, err := sold.Checkouts(ctx, page)
		if err != nil {
			return err
		}
		if more = rest; len(list) > 0 {
			page.Before = list[len(list)-1].ID
		}
		if err := writeItems(w, list, showExportedCheckout); err != nil {
			return err
		}
	}
	return nil
}

func exportPayments(ctx context.Context, w *exportWriter, read reports.App, walletID ids.ID) error {
	w.begin("payments")
	var last reports.PaymentFound
	for {
		list, err := read.ExportPayments(ctx, walletID, last)
		if err != nil || len(list) == 0 {
			return err
		}
		last = list[len(list)-1]
		if err := writeItems(w, list, showExportedPayment); err != nil {
			return err
		}
	}
}

func (s *Server) exportEntries(ctx context.Context, w *exportWriter, scope tenancy.Scope, head reports.ExportHead) error {
	w.begin("entries")
	for after := int64(0); after < head.LastSeq; {
		lines, found, err := s.store.Reports(scope).ExportEntries(ctx, head.Wallet.ID, after)
		if err != nil || len(lines) == 0 {
			return err
		}
		after = lines[len(lines)-1].Seq
		shown, err := s.showEvents(ctx, scope, found)
		if err != nil {
			return err
		}
		events := make(map[int64]*recordedEventReply, len(found))
		for i := range found {
			events[found[i].Seq] = &shown[i]
		}
		for len(lines) > 0 && lines[len(lines)-1].Seq > head.LastSeq {
			lines = lines[:len(lines)-1]
		}
		err = writeItems(w, lines, func(l reports.JournalLine) exportedEntry {
			return exportedEntry{entryReply: showEntry(l), Event: events[l.Seq], Reason: l.Reason, PaymentID: l.SourceID}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func showExportedSubscription(f reports.SubscriptionFound) exportedSubscription {
	return exportedSubscription{
		ID: f.ID.Format(ids.Subscription), PlanKey: f.PlanKey, Status: string(f.Status), PeriodStart: f.Period.Start, PeriodEnd: f.Period.End,
		ProviderID: f.ProviderID, CreatedAt: f.CreatedAt, EndedAt: f.EndedAt,
	}
}

func showExportedCustomer(c reports.CustomerFound) exportedCustomer {
	return exportedCustomer{AccountID: c.AccountID, CustomerID: c.CustomerID, CreatedAt: c.CreatedAt}
}

func showExportedRequest(r reports.Request) exportedRequest {
	return exportedRequest{
		ID: r.ID.Format(ids.Request), At: r.At, Method: r.Method, Route: r.Route, Status: r.Status, Error: r.Code, Feature: r.Feature,
	}
}

func showExportedDenial(d reports.Denial) exportedDenial {
	event, before := &d.Decision.Event, &d.Decision.Before
	return exportedDenial{
		ID: d.ID.Format(ids.Denial), At: d.At(), Reason: d.Decision.Code, Feature: d.FeatureKey, EventID: event.EventID, EntityID: event.EntityID,
		Quantity: event.Quantity, CreditKey: before.CreditKey, AmountNanocredits: event.Charge.Amount.String(),
		BalanceNanocredits: before.Amount.String(), DebtNanocredits: before.Debt.String(),
	}
}

func showExportedCheckout(c payments.Checkout) exportedCheckout {
	shown := exportedCheckout{
		ID: c.ID.Format(ids.Checkout), Kind: string(c.Kind), State: c.State, PlanKey: c.PlanKey, CreditKey: c.CreditKey,
		AmountCents: c.AmountCents, Currency: c.Currency, SessionID: c.SessionID, CreatedAt: c.CreatedAt,
	}
	if c.CreditKey != "" {
		shown.AmountNanocredits = c.Amount.String()
	}
	return shown
}

func showExportedPayment(p reports.PaymentFound) exportedPayment {
	return exportedPayment{
		Kind: p.SourceKind, ID: p.SourceID, AmountCents: p.AmountCents, Currency: p.Currency,
		RefundedCents: p.RefundedCents, DisputedCents: p.DisputedCents, CreatedAt: p.CreatedAt,
	}
}

// exportWriter writes a JSON object of lists. Each part is built in memory and sent at
// once.
type exportWriter struct {
	to    io.Writer
	admit func() error // refuses to go on
	part  []byte
	list  bool // a list is open
	item  bool // it has an item
}

var (
	errServerStops = errors.New("the server stops")
	errErased      = errors.New("the wallet was erased during the export")
)

// newExportWriter begins with the members of the head.
func newExportWriter(to io.Writer, head any, admit func() error) (*exportWriter, error) {
	text, err := json.Marshal(head)
	if err != nil {
		return nil, err
	}
	return &exportWriter{to: to, admit: admit, part: text[:len(text)-1]}, nil
}

// begin opens a list, and closes the one before.
func (w *exportWriter) begin(name string) {
	w.close()
	w.part = append(append(append(w.part, `,"`...), name...), `":[`...)
	w.list, w.item = true, false
}

func (w *exportWriter) close() {
	if w.list {
		w.part = append(w.part, ']')
	}
}

// writeItems adds items to the open list and sends the part.
func writeItems[T, R any](w *exportWriter, items []T, show func(T) R) error {
	if err := w.admit(); err != nil {
		return err
	}
	for _, item := range items {
		text, err := json.Marshal(show(item))
		if err != nil {
			return err
		}
		if w.item {
			w.part = append(w.part, ',')
		}
		w.part, w.item = append(append(w.part, '\n'), text...), true
	}
	return w.send()
}

func (w *exportWriter) send() error {
	_, err := w.to.Write(w.part)
	w.part = w.part[:0]
	return err
}

// end says that nothing is missing.
func (w *exportWriter) end() error {
	w.close()
	w.part = append(w.part, `,"complete":true}`...)
	return w.send()
}
