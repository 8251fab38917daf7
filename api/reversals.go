package api

import (
	"purser/ids"
	"purser/store"
)

type reversalReply struct {
	ID                string `json:"id"`
	EventID           string `json:"eventId"`
	AmountNanocredits string `json:"amountNanocredits"`
	Reason            string `json:"reason"`
	CreatedAt         int64  `json:"createdAt"`
}

type reverseEventReply struct {
	Reversal  reversalReply `json:"reversal"`
	Duplicate bool          `json:"duplicate"`
}

func showReversal(r store.Reversal) reversalReply {
	return reversalReply{
		ID:                r.ID.Format(ids.Transaction),
		EventID:           r.EventID,
		AmountNanocredits: r.Amount.String(),
		Reason:            r.Reason,
		CreatedAt:         r.CreatedAt,
	}
}

func (s *Server) reverseEvent(c *call) (reply, error) {
	reversal, duplicate, err := s.audited(c).Reverse(c.ctx, store.Reversal{
		ID:             ids.New(),
		EventID:        c.path["id"],
		Requested:      c.body.OptionalAmount("amountNanocredits"),
		Reason:         c.body.Text("reason"),
		IdempotencyKey: c.body.Text("idempotencyKey"),
		CreatedAt:      c.now,
		ClockOffset:    c.clockOffset,
	})
	return createdOnce(reverseEventReply{Reversal: showReversal(reversal), Duplicate: duplicate}, duplicate, err)
}
