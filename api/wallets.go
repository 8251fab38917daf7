package api

import (
	"purser/ids"
	"purser/metering"
	"purser/store"
)

type walletReply struct {
	ID                  string              `json:"id"`
	Identity            string              `json:"identity"`
	BillingPeriod       *billingPeriodReply `json:"billingPeriod"`
	BillingPeriodLocked bool                `json:"billingPeriodLocked"`
	CreatedAt           int64               `json:"createdAt"`
	Balances            []balanceReply      `json:"balances"`
}

type billingPeriodReply struct {
	Interval string `json:"interval"`
	Anchor   int64  `json:"anchor"`
}

type balanceReply struct {
	CreditKey         string `json:"creditKey"`
	AmountNanocredits string `json:"amountNanocredits"`
	DebtNanocredits   string `json:"debtNanocredits,omitempty"`
}

func showWallet(w metering.Wallet) walletReply {
	shown := walletReply{
		ID:                  w.ID.Format(ids.Wallet),
		Identity:            w.Identity,
		BillingPeriodLocked: w.BillingPeriodLocked(),
		CreatedAt:           w.CreatedAt,
		Balances:            showBalances(w.Balances),
	}
	if p := w.BillingPeriod; p != nil {
		shown.BillingPeriod = &billingPeriodReply{Interval: string(p.Interval), Anchor: p.Anchor}
	}
	return shown
}

func showBalances(balances []metering.Balance) []balanceReply {
	return showAll(balances, func(b metering.Balance) balanceReply {
		shown := balanceReply{CreditKey: b.CreditKey, AmountNanocredits: b.Amount.String()}
		if b.Debt > 0 {
			shown.DebtNanocredits = b.Debt.String()
		}
		return shown
	})
}

func (s *Server) createWallet(c *call) (reply, error) {
	wallet, made, err := s.store.App(c.scope).CreateWallet(c.ctx, ids.New(), c.body.Text("identity"), c.now)
	return createdOnce(showWallet(wallet), !made, err)
}

func (s *Server) getWallet(c *call) (reply, error) {
	wallet, err := s.store.App(c.scope).Wallet(c.ctx, c.path["identity"])
	return okOr(showWallet(wallet), err)
}

func (s *Server) listWallets(c *call) (reply, error) {
	return listPage(s, c, s.store.App(c.scope).Wallets, showWallet, func(w metering.Wallet) ids.ID { return w.ID })
}

type renameReply struct {
	Wallet    walletReply `json:"wallet"`
	Duplicate bool        `json:"duplicate"`
}

func (s *Server) renameWallet(c *call) (reply, error) {
	wallet, duplicate, err := s.audited(c).Rename(c.ctx, store.Rename{
		ID: ids.New(), From: c.path["identity"], To: c.body.Text("identity"), IdempotencyKey: c.body.Text("idempotencyKey"), CreatedAt: c.now,
	})
	s.cashier.Wake(c.scope)
	return okOr(renameReply{Wallet: showWallet(wallet), Duplicate: duplicate}, err)
}

const erasePath = "/v1/wallets/{identity}/erase"

type erasureReply struct {
	Erasure struct {
		WalletID  string `json:"walletId"`
		Reason    string `json:"reason"`
		CreatedAt int64  `json:"createdAt"`
	} `json:"erasure"`
	Duplicate bool `json:"duplicate"`
}

func (s *Server) eraseWallet(c *call) (reply, error) {
	erasure, duplicate, err := s.audited(c).Erase(c.ctx, store.Erasure{
		ID: ids.New(), Identity: c.path["identity"], Reason: c.body.Text("reason"), IdempotencyKey: c.body.Text("idempotencyKey"), CreatedAt: c.now,
	})
	s.cashier.Wake(c.scope)
	shown := erasureReply{Duplicate: duplicate}
	shown.Erasure.WalletID, shown.Erasure.Reason, shown.Erasure.CreatedAt = erasure.WalletID.Format(ids.Wallet), erasure.Reason, erasure.CreatedAt
	return okOr(shown, err)
}

func (s *Server) setBillingPeriod(c *call) (reply, error) {
	period := c.body.Object("billingPeriod")
	wallet, err := s.audited(c).SetBillingPeriod(c.ctx, c.path["identity"], metering.BillingPeriod{
		Interval: metering.Interval(period.Text("interval")),
		Anchor:   period.Int("anchor"),
	})
	return okOr(showWallet(wallet), err)
}
