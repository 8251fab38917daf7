package api

import (
	"purser/ids"
	"purser/metering"
)

type creditReply struct {
	Revision int64  `json:"revision"`
	ID       string `json:"id"`
	creditItem
	CreatedAt int64 `json:"createdAt"`
}

func showCredit(c metering.Credit) creditReply {
	return creditReply{c.Revision, c.ID.Format(ids.Credit), showCreditItem(c), c.CreatedAt}
}

func (s *Server) createCredit(c *call) (reply, error) {
	draft := readCredit(c.body)
	draft.ID, draft.CreatedAt = ids.New(), c.now
	credit, err := metering.NewCredit(draft)
	if err != nil {
		return reply{}, err
	}
	if err := s.audited(c).CreateCredit(c.ctx, credit); err != nil {
		return reply{}, err
	}
	return created(showCredit(credit)), nil
}

func (s *Server) getCredit(c *call) (reply, error) {
	credit, err := s.store.App(c.scope).Credit(c.ctx, c.path["key"])
	return okOr(showCredit(credit), err)
}

func (s *Server) listCredits(c *call) (reply, error) {
	return listPage(s, c, s.store.App(c.scope).Credits, showCredit, func(m metering.Credit) ids.ID { return m.ID })
}

func (s *Server) updateCredit(c *call) (reply, error) {
	credit, err := s.audited(c).UpdateCredit(c.ctx, c.path["key"], metering.CreditPatch{
		ExpectedRevision: c.body.OptionalInt("expectedRevision"),
		Name:             c.body.OptionalText("name"),
		Unit:             c.body.OptionalText("unit"),
	})
	return okOr(showCredit(credit), err)
}
