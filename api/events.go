package api

import (
	"context"

	"purser/fault"
	"purser/ids"
	"purser/metering"
	"purser/store"
	"purser/store/reports"
	"purser/tenancy"
)

type recordedEventReply struct {
	ID                      string            `json:"id"`
	TransactionID           string            `json:"transactionId"`
	Status                  metering.Verdict  `json:"status"`
	Identity                string            `json:"identity"`
	Feature                 string            `json:"feature"`
	EntityID                string            `json:"entityId,omitzero"`
	Quantity                int64             `json:"quantity"`
	Properties              map[string]string `json:"properties,omitzero"`
	CreditKey               string            `json:"creditKey"`
	AmountNanocredits       string            `json:"amountNanocredits"`
	BalanceAfterNanocredits string            `json:"balanceAfterNanocredits"`
	DebtAfterNanocredits    string            `json:"debtAfterNanocredits,omitzero"`
	OccurredAt              int64             `json:"occurredAt"`
	CreatedAt               int64             `json:"createdAt"`
	PeriodStart             *int64            `json:"periodStart,omitzero"`
	PeriodEnd               *int64            `json:"periodEnd,omitzero"`
	DeduplicatedFrom        string            `json:"deduplicatedFrom,omitzero"`
	Charge                  chargeReply       `json:"charge"`
	Allowance               *coveredReply     `json:"allowance,omitzero"`
	Reversals               []reversalReply   `json:"reversals"`
}

type chargeReply struct {
	PricingMode      metering.PricingMode `json:"pricingMode"`
	CostNanocredits  string               `json:"costNanocredits"`
	QuantityPerUnit  int64                `json:"quantityPerUnit"`
	BasisPoints      int64                `json:"basisPoints"`
	BillableQuantity int64                `json:"billableQuantity"`
	FeatureRevision  int64                `json:"featureRevision"`
}

type coveredReply struct {
	limitReply
	Covered int64 `json:"covered"`
}

func showRecordedEvent(e reports.EventFound) recordedEventReply {
	shown := recordedEventReply{
		ID:                      e.EventID,
		TransactionID:           e.TransactionID.Format(ids.Transaction),
		Status:                  metering.Accepted,
		Identity:                e.Identity,
		Feature:                 e.FeatureKey,
		EntityID:                e.EntityID,
		Quantity:                e.Quantity,
		Properties:              e.Properties.Values(),
		CreditKey:               e.CreditKey,
		AmountNanocredits:       e.Charge.Amount.String(),
		BalanceAfterNanocredits: e.BalanceAfter.String(),
		OccurredAt:              e.OccurredAt,
		CreatedAt:               e.CreatedAt,
		Charge: chargeReply{
			PricingMode: e.Charge.PricingMode, CostNanocredits: e.Charge.Cost.String(), QuantityPerUnit: e.Charge.QuantityPerUnit,
			BasisPoints: e.Charge.BasisPoints, BillableQuantity: e.Charge.Billable, FeatureRevision: e.Charge.FeatureRevision,
		},
	}
	shown.PeriodStart, shown.PeriodEnd = showPeriod(e.Period)
	if e.DebtAfter > 0 {
		shown.DebtAfterNanocredits = e.DebtAfter.String()
	}
	if !e.DeduplicatedFrom.IsZero() {
		shown.Status, shown.DeduplicatedFrom = metering.Deduplicated, e.DeduplicatedFrom.Format(ids.Transaction)
	}
	if e.Allowance.Limited() {
		shown.Allowance = &coveredReply{showAllowance(e.Allowance), e.Allowance.Covered}
	}
	return shown
}

func showAllowance(a metering.Allowance) limitReply {
	return limitReply{
		Limit: a.Limit, Used: a.Used, Remaining: a.Remaining(),
		PeriodStart: a.Period.Start, PeriodEnd: a.Period.End, Overage: string(a.Overage),
	}
}

func (s *Server) getEvent(c *call) (reply, error) {
	found, _, err := s.store.Reports(c.scope).Events(c.ctx, reports.EventQuery{EventID: c.path["id"]})
	if err == nil && len(found) == 0 {
		err = fault.New(fault.EventNotFound)
	}
	if err != nil {
		return reply{}, err
	}
	shown, err := s.showEvents(c.ctx, c.scope, found)
	if err != nil {
		return reply{}, err
	}
	return ok(shown[0]), nil
}

// showEvents adds to each event what was reversed of it.
func (s *Server) showEvents(ctx context.Context, scope tenancy.Scope, list []reports.EventFound) ([]recordedEventReply, error) {
	keys := make([]store.EventKey, len(list))
	for i, e := range list {
		keys[i] = store.EventKey{WalletID: e.WalletID, TransactionID: e.TransactionID}
	}
	reversals, err := s.store.App(scope).Reversals(ctx, keys)
	shown := showAll(list, showRecordedEvent)
	for i, e := range list {
		shown[i].Reversals = showAll(reversals[e.TransactionID], showReversal)
	}
	return shown, err
}

// listEvents pages a wallet's events by their number, all others by their transaction.
func (s *Server) listEvents(c *call) (reply, error) {
	q, err := c.historyQuery()
	if err != nil {
		return reply{}, err
	}
	app, filter := s.store.Reports(c.scope), c.filter("identity", "feature", "from", "to")
	if c.query.Has("identity") {
		q.Identity = c.query.Text("identity")
		if err := s.openPosition(c, filter, &q.Position); err != nil {
			return reply{}, err
		}
		list, next, err := app.EventsOfWallet(c.ctx, q, c.query.Text("feature"))
		if err != nil {
			return reply{}, err
		}
		shown, err := s.showEvents(c.ctx, c.scope, list)
		return okOr(page[recordedEventReply]{Data: shown, Cursor: s.sealPosition(c, filter, next)}, err)
	}
	all := reports.EventQuery{FeatureKey: c.query.Text("feature"), From: q.From, To: q.To, Page: store.Page{Limit: q.Limit}}
	if c.query.Has("cursor") {
		position, err := s.cursors.open(c, filter, c.query.Text("cursor"), len(all.Before))
		if err != nil {
			return reply{}, err
		}
		copy(all.Before[:], position)
	}
	list, next, err := app.Events(c.ctx, all)
	if err != nil {
		return reply{}, err
	}
	events, err := s.showEvents(c.ctx, c.scope, list)
	shown := page[recordedEventReply]{Data: events}
	if next != nil {
		shown.Cursor = s.cursors.seal(c, filter, next.Before[:])
	}
	return okOr(shown, err)
}

type explainReply struct {
	checkReply
	Gates []gateReply `json:"gates"`
}

// gateReply has the numbers that the gate compared: quantities at the allowance,
// nanocredits at the price and the balance.
type gateReply struct {
	Gate     metering.Gate    `json:"gate"`
	Outcome  metering.Outcome `json:"outcome"`
	Passed   bool             `json:"passed"`
	Required string           `json:"required,omitzero"`
	Actual   string           `json:"actual,omitzero"`
}

// explainUsage decides as checkUsage does, also what that refuses with an error, and
// shows every gate. It is not counted as a denial.
func (s *Server) explainUsage(c *call) (reply, error) {
	d, err := s.usage.Explain(c.usage(c.body, c.body.Text("identity")))
	if err != nil {
		return reply{}, err
	}
	shown := explainReply{checkReply: showCheck(d), Gates: []gateReply{}}
	for _, g := range d.Gates() {
		if g.Gate == metering.GateEventID { // a check has no event id
			continue
		}
		gate := gateReply{Gate: g.Gate, Outcome: g.Outcome, Passed: g.Outcome == metering.GatePassed || g.Outcome == metering.GateSettled}
		if g.Need != 0 || g.Have != 0 {
			gate.Required, gate.Actual = metering.Amount(g.Need).String(), metering.Amount(g.Have).String()
		}
		shown.Gates = append(shown.Gates, gate)
	}
	return ok(shown), nil
}
