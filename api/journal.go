package api

import (
	"encoding/binary"
	"strconv"
	"time"

	"purser/fault"
	"purser/ids"
	"purser/metering"
	"purser/store"
	"purser/store/reports"
)

type entryReply struct {
	ID                      string              `json:"id"`
	Seq                     int64               `json:"seq"`
	Kind                    metering.EntryKind  `json:"kind"`
	CreditKey               string              `json:"creditKey"`
	DeltaNanocredits        string              `json:"deltaNanocredits"`
	BalanceAfterNanocredits string              `json:"balanceAfterNanocredits"`
	DebtAfterNanocredits    string              `json:"debtAfterNanocredits,omitzero"`
	CreatedAt               int64               `json:"createdAt"`
	Event                   *entryEventReply    `json:"event,omitzero"`
	IdempotencyKey          *string             `json:"idempotencyKey,omitzero"`
	ReversalOf              string              `json:"reversalOf,omitzero"`
	Transfer                *entryTransferReply `json:"transfer,omitzero"`
}

type entryTransferReply struct {
	ID       string `json:"id"`
	Identity string `json:"identity"`
}

type entryEventReply struct {
	ID       string `json:"id"`
	Feature  string `json:"feature"`
	Quantity int64  `json:"quantity"`
}

func showEntry(l reports.JournalLine) entryReply {
	shown := entryReply{
		ID:                      l.ID.Format(l.Kind.IDPrefix()),
		Seq:                     l.Seq,
		Kind:                    l.Kind,
		CreditKey:               l.CreditKey,
		DeltaNanocredits:        l.Delta.String(),
		BalanceAfterNanocredits: l.BalanceAfter.String(),
		CreatedAt:               l.CreatedAt,
		IdempotencyKey:          l.IdempotencyKey,
		ReversalOf:              l.ReversalOf,
	}
	if t := l.Transfer; t != nil {
		shown.Transfer = &entryTransferReply{ID: t.ID.Format(ids.Transaction), Identity: t.Identity}
	}
	if l.DebtAfter > 0 {
		shown.DebtAfterNanocredits = l.DebtAfter.String()
	}
	if l.Kind == metering.EntryCharge {
		shown.Event = &entryEventReply{ID: l.EventID, Feature: l.FeatureKey, Quantity: l.Quantity}
	}
	return shown
}

// listJournal pages by an entry's number: backward from the newest, or forward with
// `after`. Either way the cursor holds the last number of the page.
func (s *Server) listJournal(c *call) (reply, error) {
	q, err := c.historyQuery()
	if err != nil {
		return reply{}, err
	}
	q.Identity = c.path["identity"]
	q.CreditKey, q.Kind = c.query.Text("creditKey"), metering.EntryKind(c.query.Text("kind"))
	q.Ascending, q.Position.Seq = c.query.Has("after"), c.query.Int("after")
	filter := c.filter("creditKey", "kind", "from", "to", "after") + "\x00" + q.Identity
	if err := s.openPosition(c, filter, &q.Position); err != nil {
		return reply{}, err
	}
	list, next, err := s.store.Reports(c.scope).History(c.ctx, q)
	return okOr(page[entryReply]{Data: showAll(list, showEntry), Cursor: s.sealPosition(c, filter, next)}, err)
}

// historyQuery reads the parameters that the journal and the events share.
func (c *call) historyQuery() (reports.HistoryQuery, error) {
	q := reports.HistoryQuery{From: c.query.Int("from"), To: c.query.Int("to"), Limit: int(c.query.Int("limit"))}
	if q.To != 0 && q.From >= q.To {
		return q, invalid("from must be before to.")
	}
	return q, nil
}

// filter joins the given query parameters, so that a cursor continues only its own list.
func (c *call) filter(names ...string) (joined string) {
	for _, name := range names {
		value := c.query[name]
		if n, ok := value.(int64); ok {
			value = strconv.FormatInt(n, 10)
		}
		text, _ := value.(string)
		joined += name + "=" + text + "\x00"
	}
	return joined
}

// seqSize is the size of an entry's number in a cursor, after the wallet's id.
const seqSize = 8

// openPosition reads a position from the cursor, if there is one.
func (s *Server) openPosition(c *call, filter string, p *store.Position) error {
	if !c.query.Has("cursor") {
		return nil
	}
	position, err := s.cursors.open(c, filter, c.query.Text("cursor"), len(p.WalletID)+seqSize)
	if err == nil {
		p.Seq = int64(binary.BigEndian.Uint64(position[copy(p.WalletID[:], position):]))
	}
	return err
}

// sealPosition is the cursor for a position, or nil at the end of the list.
func (s *Server) sealPosition(c *call, filter string, p store.Position) *string {
	if p.Seq == 0 {
		return nil
	}
	return s.cursors.seal(c, filter, binary.BigEndian.AppendUint64(p.WalletID[:], uint64(p.Seq)))
}

type balancesReply struct {
	Identity string         `json:"identity"`
	At       int64          `json:"at"`
	Balances []balanceReply `json:"balances"`
}

// getBalances reads balances as of a moment, or now.
func (s *Server) getBalances(c *call) (reply, error) {
	app, identity := s.store.App(c.scope), c.path["identity"]
	offset, err := app.ClockOffset(c.ctx)
	if err != nil {
		return reply{}, err
	}
	now := c.now + offset
	if !c.query.Has("at") {
		wallet, err := app.Wallet(c.ctx, identity)
		return okOr(balancesReply{identity, s.now() + offset, showBalances(wallet.Balances)}, err) // no earlier than what they hold
	}
	at := c.query.Int("at")
	if at > now+maxFuture.Milliseconds() {
		return reply{}, fault.Newf(fault.InvalidRequest, "at is in the future. The balances of a later moment are not known.")
	}
	balances, err := s.store.Reports(c.scope).BalancesAt(c.ctx, identity, at)
	return okOr(balancesReply{identity, at, showBalances(balances)}, err)
}

// maxFuture is how far a caller's clock may be ahead of the server's.
const maxFuture = time.Minute
