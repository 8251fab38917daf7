package api

import (
	"purser/ids"
	"purser/store"
)

type depositReply struct {
	ID                string  `json:"id"`
	Identity          string  `json:"identity"`
	CreditKey         string  `json:"creditKey"`
	AmountNanocredits string  `json:"amountNanocredits"`
	IdempotencyKey    *string `json:"idempotencyKey"`
	CreatedAt         int64   `json:"createdAt"`
}

type createDepositReply struct {
	Deposit   depositReply `json:"deposit"`
	Duplicate bool         `json:"duplicate"`
}

func showDeposit(d store.Deposit) depositReply {
	return depositReply{
		ID:                d.ID.Format(ids.Deposit),
		Identity:          d.Identity,
		CreditKey:         d.CreditKey,
		AmountNanocredits: d.Amount.String(),
		IdempotencyKey:    d.IdempotencyKey,
		CreatedAt:         d.CreatedAt,
	}
}

func (s *Server) createDeposit(c *call) (reply, error) {
	deposit, duplicate, err := s.audited(c).Deposit(c.ctx, store.Deposit{
		ID:             ids.New(),
		Identity:       c.body.Text("identity"),
		CreditKey:      c.body.Text("creditKey"),
		Amount:         c.body.Amount("amountNanocredits"),
		IdempotencyKey: c.body.OptionalText("idempotencyKey"),
		CreatedAt:      c.now,
		ClockOffset:    c.clockOffset,
	})
	return createdOnce(createDepositReply{Deposit: showDeposit(deposit), Duplicate: duplicate}, duplicate, err)
}

// listDeposits pages by the deposit's number within its wallet. The cursor is
// bound to the filter, so that it cannot continue another list.
func (s *Server) listDeposits(c *call) (reply, error) {
	requested := store.DepositPage{
		Identity:  c.query.Text("identity"),
		CreditKey: c.query.Text("creditKey"),
		Limit:     int(c.query.Int("limit")),
	}
	filter := requested.Identity + "\x00" + requested.CreditKey
	if err := s.openPosition(c, filter, &requested.Before); err != nil {
		return reply{}, err
	}
	list, next, err := s.store.App(c.scope).Deposits(c.ctx, requested)
	return okOr(page[depositReply]{Data: showAll(list, showDeposit), Cursor: s.sealPosition(c, filter, next)}, err)
}
