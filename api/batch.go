package api

import (
	"errors"
	"strconv"
	"strings"

	"purser/fault"
	"purser/httpd"
	"purser/ids"
	"purser/metering"
	"purser/store"
)

// itemsPerToken is how many items of a batch count as one request against the rate
// limit.
const itemsPerToken = 10

func tokensOf(items int) int64 { return int64(items+itemsPerToken-1) / itemsPerToken }

// Statuses of an item beside the verdicts.
const (
	itemRefused metering.Verdict = "refused"
	itemInvalid metering.Verdict = "invalid"
	itemUnknown metering.Verdict = "unknown"
)

type batchReply struct {
	Results []itemReply `json:"results"`
	Counts  batchCounts `json:"counts"`
}

type groupReply struct {
	Results []itemReply `json:"results"`
}

// AppendJSON appends what json.Marshal gives.
func (r batchReply) AppendJSON(text []byte) []byte {
	text = appendItems(append(text, `{"results":`...), r.Results)
	text = appendInt(text, `,"counts":{"accepted":`, int64(r.Counts.Accepted))
	text = appendInt(text, `,"duplicate":`, int64(r.Counts.Duplicate))
	text = appendInt(text, `,"deduplicated":`, int64(r.Counts.Deduplicated))
	text = appendInt(text, `,"refused":`, int64(r.Counts.Refused))
	text = appendInt(text, `,"invalid":`, int64(r.Counts.Invalid))
	text = appendInt(text, `,"unknown":`, int64(r.Counts.Unknown))
	return append(text, "}}"...)
}

// AppendJSON appends what json.Marshal gives.
func (r groupReply) AppendJSON(text []byte) []byte {
	return append(appendItems(append(text, `{"results":`...), r.Results), '}')
}

type itemReply struct {
	Index             int              `json:"index"`
	ID                string           `json:"id,omitzero"`
	Status            metering.Verdict `json:"status"`
	TransactionID     string           `json:"transactionId,omitzero"`
	AmountNanocredits string           `json:"amountNanocredits,omitzero"`
	PeriodStart       *int64           `json:"periodStart,omitzero"`
	PeriodEnd         *int64           `json:"periodEnd,omitzero"`
	DeduplicatedFrom  string           `json:"deduplicatedFrom,omitzero"`
	Error             fault.Code       `json:"error,omitzero"`
	Message           string           `json:"message,omitzero"`
	Pointer           string           `json:"pointer,omitzero"`
}

func appendItems(text []byte, items []itemReply) []byte {
	text = append(text, '[')
	for i := range items {
		if i > 0 {
			text = append(text, ',')
		}
		text = items[i].append(text)
	}
	return append(text, ']')
}

func (r *itemReply) append(text []byte) []byte {
	text = appendInt(text, `{"index":`, int64(r.Index))
	text = appendGiven(text, `,"id":`, r.ID)
	text = appendText(text, `,"status":`, string(r.Status))
	text = appendGiven(text, `,"transactionId":`, r.TransactionID)
	text = appendGiven(text, `,"amountNanocredits":`, r.AmountNanocredits)
	text = appendPeriod(text, r.PeriodStart, r.PeriodEnd)
	text = appendGiven(text, `,"deduplicatedFrom":`, r.DeduplicatedFrom)
	text = appendGiven(text, `,"error":`, string(r.Error))
	text = appendGiven(text, `,"message":`, r.Message)
	text = appendGiven(text, `,"pointer":`, r.Pointer)
	return append(text, '}')
}

type batchCounts struct {
	Accepted     int `json:"accepted"`
	Duplicate    int `json:"duplicate"`
	Deduplicated int `json:"deduplicated"`
	Refused      int `json:"refused"`
	Invalid      int `json:"invalid"`
	Unknown      int `json:"unknown"`
}

func (n *batchCounts) add(status metering.Verdict) {
	switch status {
	case metering.Accepted:
		n.Accepted++
	case metering.Duplicate:
		n.Duplicate++
	case metering.Deduplicated:
		n.Deduplicated++
	case itemRefused:
		n.Refused++
	case itemInvalid:
		n.Invalid++
	default:
		n.Unknown++
	}
}

// trackBatch tracks the valid items of a batch and reports each item on its own.
func (s *Server) trackBatch(c *call) (reply, error) {
	items := c.body.Objects("events")
	if tokens := tokensOf(len(items)); tokens > 1 {
		if err := s.limits.take(c.keyName(), httpd.Claim{Tokens: tokens, Held: 1}, c.header); err != nil {
			return reply{}, s.reauthenticate(c, err)
		}
	}
	shown := batchReply{Results: make([]itemReply, len(items))}
	var events []store.Usage
	var positions []int // of each event among the items
	for i, item := range items {
		if v := c.operation.items.check(item); v != nil {
			shown.Results[i] = c.invalidItem(i, item, v)
			continue
		}
		c.operation.items.fill(item)
		events, positions = append(events, c.event(item, item.Text("identity"), ids.New())), append(positions, i)
	}
	outcomes, err := s.trackItems(c, events)
	if err != nil {
		return reply{}, err
	}
	for i := range outcomes {
		shown.Results[positions[i]] = showItem(positions[i], events[i].EventID, &outcomes[i])
	}
	for _, item := range shown.Results {
		shown.Counts.add(item.Status)
	}
	return ok(shown), nil
}

// trackItems tracks the events of a batch. A key that was revoked refuses the batch as a
// whole, unless some items were recorded before.
func (s *Server) trackItems(c *call, events []store.Usage) ([]store.Outcome, error) {
	if len(events) == 0 {
		return nil, s.reauthenticate(c, nil)
	}
	outcomes, err := s.usage.TrackBatch(events)
	if err != nil {
		return nil, err
	}
	for _, o := range outcomes {
		if kind := kindOfFault(o.Err); kind != fault.Unauthorized && kind != fault.Forbidden {
			return outcomes, nil
		}
	}
	return nil, outcomes[0].Err
}

func kindOfFault(err error) fault.Kind {
	var f *fault.Fault
	if errors.As(err, &f) {
		return f.Kind()
	}
	return 0
}

// invalidItem reports a mistake in an item.
func (c *call) invalidItem(index int, item input, v *violation) itemReply {
	id, _ := item["id"].(string)
	if c.operation.items.property("id").schema.check(id) != nil {
		id = ""
	}
	pointer := itemPointer(index)
	if v.path != "" {
		pointer += "/" + strings.NewReplacer(".", "/", "[", "/", "]", "").Replace(v.path)
	}
	f := v.fault("The event")
	return itemReply{Index: index, ID: id, Status: itemInvalid, Error: f.Code, Message: f.Message, Pointer: pointer}
}

func itemPointer(index int) string { return "/events/" + strconv.Itoa(index) }

// showItem reports the outcome of an item that was sent to the database.
func showItem(index int, id string, o *store.Outcome) itemReply {
	err := o.Err
	if err == nil {
		err = o.Decision.Err()
	}
	if err == nil {
		e := showEvent(&o.Decision)
		return itemReply{
			Index: index, ID: id, Status: e.Status, TransactionID: e.TransactionID, AmountNanocredits: e.AmountNanocredits,
			PeriodStart: e.PeriodStart, PeriodEnd: e.PeriodEnd, DeduplicatedFrom: e.DeduplicatedFrom,
		}
	}
	f := fault.New(fault.InternalError) // the engine has logged the cause
	errors.As(err, &f)
	shown := itemReply{Index: index, ID: id, Error: f.Code, Message: f.Message}
	switch f.Kind() {
	case fault.Invalid, fault.NotFound, fault.Unprocessable:
		shown.Status, shown.Pointer = itemInvalid, itemPointer(index)
	case fault.Internal, fault.Limited:
		shown.Status = itemUnknown
	default:
		shown.Status = itemRefused
	}
	if f.Code == fault.FeatureNotFound {
		shown.Pointer += "/feature"
	}
	return shown
}

// trackGroup tracks events of one identity together, or none of them.
func (s *Server) trackGroup(c *call) (reply, error) {
	items := c.body.Objects("events")
	identity := c.body.Text("identity")
	events := make([]store.Usage, len(items))
	first := make(map[string]int, len(items))
	for i, item := range items {
		events[i] = c.event(item, identity, ids.New())
		if earlier, repeated := first[events[i].EventID]; repeated {
			return reply{}, s.reauthenticate(c, invalid("events[%d].id is that of events[%d]. Each event of a group needs its own id.", i, earlier))
		}
		first[events[i].EventID] = i
	}
	outcomes, refused, err := s.usage.TrackGroup(events)
	if err != nil {
		if kind := kindOfFault(err); kind == fault.Conflict || kind == fault.NotFound || kind == fault.Unprocessable {
			err = &httpd.ItemError{Cause: err, Index: refused}
		}
		return reply{}, err
	}
	shown, recorded := groupReply{Results: make([]itemReply, len(outcomes))}, false
	for i := range outcomes {
		shown.Results[i] = showItem(i, events[i].EventID, &outcomes[i])
		recorded = recorded || outcomes[i].Verdict != metering.Duplicate
	}
	if recorded {
		return created(shown), nil
	}
	return ok(shown), nil
}
