package api

import (
	"purser/ids"
	"purser/store"
)

type transferReply struct {
	ID                string `json:"id"`
	From              string `json:"from"`
	To                string `json:"to"`
	CreditKey         string `json:"creditKey"`
	AmountNanocredits string `json:"amountNanocredits"`
	Reason            string `json:"reason"`
	IdempotencyKey    string `json:"idempotencyKey"`
	CreatedAt         int64  `json:"createdAt"`
}

type createTransferReply struct {
	Transfer  transferReply `json:"transfer"`
	Duplicate bool          `json:"duplicate"`
}

func showTransfer(t store.Transfer) transferReply {
	return transferReply{
		ID:                t.ID.Format(ids.Transaction),
		From:              t.From,
		To:                t.To,
		CreditKey:         t.CreditKey,
		AmountNanocredits: t.Amount.String(),
		Reason:            t.Reason,
		IdempotencyKey:    t.IdempotencyKey,
		CreatedAt:         t.CreatedAt,
	}
}

func (s *Server) createTransfer(c *call) (reply, error) {
	transfer, duplicate, err := s.audited(c).Transfer(c.ctx, store.Transfer{
		ID:             ids.New(),
		ToEntryID:      ids.New(),
		From:           c.body.Text("from"),
		To:             c.body.Text("to"),
		CreditKey:      c.body.Text("creditKey"),
		Amount:         c.body.Amount("amountNanocredits"),
		Reason:         c.body.Text("reason"),
		IdempotencyKey: c.body.Text("idempotencyKey"),
		CreatedAt:      c.now,
		ClockOffset:    c.clockOffset,
	})
	return createdOnce(createTransferReply{Transfer: showTransfer(transfer), Duplicate: duplicate}, duplicate, err)
}
