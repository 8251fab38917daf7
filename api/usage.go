package api

import (
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
	"go.opentelemetry.io/otel/trace"

	"purser/fault"
	"purser/ids"
	"purser/metering"
	"purser/store"
)

type checkReply struct {
	Allowed            bool        `json:"allowed"`
	CreditKey          string      `json:"creditKey"`
	AmountNanocredits  string      `json:"amountNanocredits"`
	BalanceNanocredits string      `json:"balanceNanocredits"`
	PeriodStart        *int64      `json:"periodStart,omitzero"`
	PeriodEnd          *int64      `json:"periodEnd,omitzero"`
	Limit              *limitReply `json:"limit,omitzero"`
	Reason             fault.Code  `json:"reason,omitzero"`
}

type limitReply struct {
	Limit       int64  `json:"limit"`
	Used        int64  `json:"used"`
	Remaining   int64  `json:"remaining"`
	PeriodStart int64  `json:"periodStart"`
	PeriodEnd   int64  `json:"periodEnd"`
	Overage     string `json:"overage"`
}

// hotCheckReply is a type of its own because explainReply embeds checkReply and would
// inherit the method.
type hotCheckReply checkReply

// AppendJSON appends what json.Marshal gives.
func (r hotCheckReply) AppendJSON(text []byte) []byte {
	text = strconv.AppendBool(append(text, `{"allowed":`...), r.Allowed)
	text = appendText(text, `,"creditKey":`, r.CreditKey)
	text = appendText(text, `,"amountNanocredits":`, r.AmountNanocredits)
	text = appendText(text, `,"balanceNanocredits":`, r.BalanceNanocredits)
	text = appendPeriod(text, r.PeriodStart, r.PeriodEnd)
	if l := r.Limit; l != nil {
		text = appendInt(text, `,"limit":{"limit":`, l.Limit)
		text = appendInt(text, `,"used":`, l.Used)
		text = appendInt(text, `,"remaining":`, l.Remaining)
		text = appendInt(text, `,"periodStart":`, l.PeriodStart)
		text = appendInt(text, `,"periodEnd":`, l.PeriodEnd)
		text = append(appendText(text, `,"overage":`, l.Overage), '}')
	}
	text = appendGiven(text, `,"reason":`, string(r.Reason))
	return append(text, '}')
}

func (s *Server) checkUsage(c *call) (reply, error) {
	d, err := s.usage.Check(c.usage(c.body, c.body.Text("identity")))
	if err == nil && d.Verdict == metering.Unprocessable {
		err = d.Err()
	}
	if err != nil {
		return reply{}, err
	}
	return ok(hotCheckReply(showCheck(d))), nil
}

func showCheck(d metering.Decision) checkReply {
	shown := checkReply{
		Allowed:            d.Allowed(),
		CreditKey:          d.Before.CreditKey,
		AmountNanocredits:  d.Event.Charge.Amount.String(),
		BalanceNanocredits: d.Before.Amount.String(),
		Reason:             d.Code,
	}
	shown.PeriodStart, shown.PeriodEnd = showPeriod(d.Event.Period)
	if a := d.Allowance; a.Limited() {
		limit := showAllowance(a)
		shown.Limit = &limit
	}
	return shown
}

type eventReply struct {
	Status            metering.Verdict `json:"status"`
	TransactionID     string           `json:"transactionId"`
	AmountNanocredits string           `json:"amountNanocredits"`
	PeriodStart       *int64           `json:"periodStart,omitzero"`
	PeriodEnd         *int64           `json:"periodEnd,omitzero"`
	DeduplicatedFrom  string           `json:"deduplicatedFrom,omitzero"`
}

// AppendJSON appends what json.Marshal gives.
func (r eventReply) AppendJSON(text []byte) []byte {
	text = appendText(text, `{"status":`, string(r.Status))
	text = appendText(text, `,"transactionId":`, r.TransactionID)
	text = appendText(text, `,"amountNanocredits":`, r.AmountNanocredits)
	text = appendPeriod(text, r.PeriodStart, r.PeriodEnd)
	text = appendGiven(text, `,"deduplicatedFrom":`, r.DeduplicatedFrom)
	return append(text, '}')
}

func appendPeriod(text []byte, start, end *int64) []byte {
	if start != nil {
		text = appendInt(text, `,"periodStart":`, *start)
	}
	if end != nil {
		text = appendInt(text, `,"periodEnd":`, *end)
	}
	return text
}

func appendInt(text []byte, name string, value int64) []byte {
	return strconv.AppendInt(append(text, name...), value, 10)
}

// appendText appends a name and a string. AppendQuote fails only for invalid UTF-8, which
// no stored text has.
func appendText(text []byte, name, value string) []byte {
	text, _ = jsontext.AppendQuote(append(text, name...), value)
	return text
}

// appendGiven appends a name and a string, or nothing for an empty one.
func appendGiven(text []byte, name, value string) []byte {
	if value == "" {
		return text
	}
	return appendText(text, name, value)
}

// trackUsage records an event. The request's id is also the transaction's.
func (s *Server) trackUsage(c *call) (reply, error) {
	d, err := s.usage.Track(c.event(c.body, c.body.Text("identity"), c.id))
	if err == nil {
		err = d.Err()
	}
	if err != nil {
		return reply{}, err
	}
	if d.Verdict == metering.Accepted {
		return created(showEvent(&d)), nil
	}
	return ok(showEvent(&d)), nil
}

func showEvent(d *metering.Decision) eventReply {
	shown := eventReply{
		Status:            d.Verdict,
		TransactionID:     d.Event.TransactionID.Format(ids.Transaction),
		AmountNanocredits: d.Event.Charge.Amount.String(),
	}
	shown.PeriodStart, shown.PeriodEnd = showPeriod(d.Event.Period)
	if from := d.Event.DeduplicatedFrom; !from.IsZero() {
		shown.DeduplicatedFrom = from.Format(ids.Transaction)
	}
	return shown
}

func (c *call) event(from input, identity string, transaction ids.ID) store.Usage {
	event := c.usage(from, identity)
	event.EventID, event.TransactionID = from.Text("id"), transaction
	event.Properties = from.Properties("properties")
	return event
}

// usage reads the fields that events and checks share.
func (c *call) usage(from input, identity string) store.Usage {
	deadline, _ := c.ctx.Deadline()
	return store.Usage{
		Deadline:   deadline,
		Span:       trace.SpanFromContext(c.ctx),
		Scope:      c.scope,
		KeyID:      c.key.ID,
		RequestID:  c.id,
		Identity:   identity,
		FeatureKey: from.Text("feature"),
		Usage: metering.Usage{
			EntityID:   from.Text("entityId"),
			Quantity:   from.Int("quantity"),
			Amount:     from.OptionalAmount("amountNanocredits"),
			OccurredAt: from.OptionalInt("occurredAt"),
		},
	}
}

func showPeriod(p metering.Period) (start, end *int64) {
	if p.IsZero() {
		return nil, nil
	}
	return &p.Start, &p.End
}
