package store_test

import (
	"slices"
	"testing"
	"time"

	"purser/billing"
	"purser/store/storetest"
	"purser/store/verify"
)

const paymentsStand = "credits granted and clawed back for payments match the journal"

// Each spoiling is one that only a bug, or a hand in the database, can make.
func TestVerifyPairsPaymentsWithTheJournal(t *testing.T) {
	t.Parallel()
	for name, spoiling := range map[string]string{
		"":                                      `SELECT 1`,
		"a grant that no payment brought":       `UPDATE journal SET source_kind = NULL, source_id = NULL WHERE kind = 'grant'`,
		"a grant of another payment":            `UPDATE journal SET source_id = 'in_other' WHERE kind = 'grant'`,
		"a payment that brought nothing":        `DELETE FROM journal WHERE kind = 'top-up'`,
		"a payment that brought more":           `UPDATE payment_credits SET amount_nanocredits = amount_nanocredits + 1`,
		"a refund that is not in the journal":   `UPDATE payment_credits SET taken_back_nanocredits = taken_back_nanocredits + 1`,
		"a refund that the payment knows not":   `UPDATE payment_credits SET taken_back_nanocredits = 0`,
		"an entry in a wallet that did not pay": `UPDATE provider_payments SET wallet_id = (SELECT id FROM wallets WHERE identity = 'eve')`,
	} {
		t.Run(name, func(t *testing.T) {
			url := storetest.FreshURL(t)
			db := openStore(t, url)
			s := newStorefront(t, db)
			s.subscribe(t, "ann", "sub_ann")
			_, remote := s.buy(t, "ann")
			s.deposit(t, depositOf("eve", "tokens", 1, "eve's"))
			noError(t, s.Payments().ApplyCharge(t.Context(), s.lease(t, "identity:ann"), billing.ProviderCharge{
				ID: remote.ChargeID, Refunds: []billing.ProviderRefund{{ID: "re_1", AmountCents: 1000, Status: "succeeded"}},
			}, moment))
			exec(t, connect(t, url), spoiling)
			for _, since := range []time.Time{{}, time.Now().Add(-time.Hour)} {
				v, err := s.Verification().Verify(t.Context(), verify.Options{Since: since})
				noError(t, err)
				found := slices.ContainsFunc(v.Differences, func(d verify.Difference) bool { return d.Check == paymentsStand })
				if found != (name != "") {
					t.Errorf("since %v: %v", since, v.Differences)
				}
				if name == "" && len(v.Differences) > 0 {
					t.Error(v.Differences)
				}
			}
		})
	}
}
