package verify

import (
	"context"

	"purser/ids"
	"purser/metering"
	"purser/store/internal/ledger"
	"purser/store/internal/pg"
	"purser/store/internal/wire"
)

var (
	verifyReadBalances = pg.Declare("verify read balances", `
		SELECT b.wallet_id, b.credit_id, b.org_id, b.amount_nanocredits, b.debt_nanocredits,
			EXISTS (SELECT 1 FROM debtors d WHERE d.app_id = $1 AND d.wallet_id = b.wallet_id AND d.credit_id = b.credit_id)
		FROM unnest($2::uuid[]) AS t (id) CROSS JOIN LATERAL (
			SELECT wallet_id, credit_id, org_id, amount_nanocredits, debt_nanocredits
			FROM balances WHERE app_id = $1 AND wallet_id = t.id) b`)

	verifyReadCounters = pg.Declare("verify read counters", `
		SELECT c.wallet_id, c.feature_id, c.period_start, c.period_end, c.used
		FROM unnest($2::uuid[]) AS t (id) CROSS JOIN LATERAL (
			SELECT wallet_id, feature_id, period_start, period_end, used
			FROM counters WHERE app_id = $1 AND wallet_id = t.id) c`)
)

// finish holds the wallets that were read to their end to what is stored beside
// their entries.
func (b *verifyWork) finish(ctx context.Context) error {
	var wallets []ids.ID
	lastSeq := make(map[ids.ID]int64)
	for _, r := range b.ranges {
		if r.proof.done {
			wallets = append(wallets, r.wallet)
			lastSeq[r.wallet] = r.last
		}
	}
	if len(wallets) == 0 {
		return nil
	}
	for _, id := range wallets {
		b.checkEnd(b.proofs[id], lastSeq[id])
	}
	if err := b.checkBalances(ctx, wallets); err != nil {
		return err
	}
	if err := b.checkCounters(ctx, wallets); err != nil {
		return err
	}
	if !b.pass.options.all() {
		return nil
	}
	if err := b.checkUsage(ctx, wallets); err != nil {
		return err
	}
	return b.countBilled(ctx, wallets)
}

func (b *verifyWork) checkEnd(p *walletProof, lastSeq int64) {
	if p.seq != lastSeq {
		p.differs(ruleWallet, "the last entry is number %d, but the wallet says %d", p.seq, lastSeq)
	}
	if last := min(p.seq, lastSeq); last < p.sealedSeq {
		p.differs(ruleSeal, "%d entries were verified and sealed, but the wallet now ends with entry %d", p.sealedSeq, last)
	}
	charged := b.charged[p.wallet]
	if p.accepted && !charged {
		p.differs(ruleWallet, "events were charged, but the wallet is not marked as charged")
	}
	if charged && p.fromStart && !p.accepted {
		p.differs(ruleWallet, "the wallet is marked as charged, but no event was")
	}
}

func (b *verifyWork) checkBalances(ctx context.Context, wallets []ids.ID) error {
	type balanceKey struct{ wallet, credit ids.ID }
	stored := make(map[balanceKey]bool)
	err := b.rows(ctx, verifyReadBalances, func(r *wire.Row) {
		wallet, credit, org := r.ID(), r.ID(), r.ID()
		held := metering.Balance{CreditID: credit, Amount: r.Amount(), Debt: r.Amount()}
		debtor := r.Bool()
		proof := b.proofs[wallet]
		stored[balanceKey{wallet, credit}] = true
		if org != b.pass.app.app.Scope.OrgID {
			proof.differs(ruleOrg, "the balance of %s names another organization", b.pass.catalog.credit(credit))
		}
		if held.Amount > 0 && held.Debt > 0 {
			proof.differs(ruleDebt, "the balance of %s is %s beside a debt of %s", b.pass.catalog.credit(credit), held.Amount.Credits(), held.Debt.Credits())
		}
		if (held.Debt > 0) != debtor {
			proof.differs(ruleDebtors, "%s of %s: in debt %t, listed as a debtor %t", balanceText(held), b.pass.catalog.credit(credit), held.Debt > 0, debtor)
		}
		if want, met := proof.balances[credit]; (met || proof.known) && (want.Amount != held.Amount || want.Debt != held.Debt) {
			proof.differs(ruleBalance, "the stored balance of %s is %s, but the entries end at %s", b.pass.catalog.credit(credit), balanceText(held), balanceText(want))
		}
	}, wallets)
	if err != nil {
		return err
	}
	for _, id := range wallets {
		proof := b.proofs[id]
		for credit, want := range proof.balances {
			if !stored[balanceKey{id, credit}] && (want.Amount != 0 || want.Debt != 0) {
				proof.differs(ruleBalance, "no balance of %s is stored, but the entries end at %s", b.pass.catalog.credit(credit), balanceText(want))
			}
		}
	}
	return nil
}

// checkCounters compares the counters that moved with what is stored; all of a
// wallet's when the pass has read all of its entries.
func (b *verifyWork) checkCounters(ctx context.Context, wallets []ids.ID) error {
	stored := make(map[ids.ID]map[metering.CounterKey]int64)
	take := func(wallet ids.ID, key metering.CounterKey, used int64) {
		if stored[wallet] == nil {
			stored[wallet] = make(map[metering.CounterKey]int64)
		}
		stored[wallet][key] = used
	}
	var err error
	if b.pass.options.all() {
		err = b.readCounterRows(ctx, verifyReadCounters, take, wallets)
	} else {
		var keys counterKeys
		for _, id := range wallets {
			for key := range b.proofs[id].counters {
				keys.add(id, key)
			}
		}
		err = b.readCounterRows(ctx, ledger.ReadCounters, take, keys.wallets, keys.features, keys.starts, keys.ends)
	}
	if err != nil {
		return err
	}
	for _, id := range wallets {
		proof := b.proofs[id]
		for key, used := range proof.counters {
			if stored[id][key] != used {
				proof.differs(ruleCounter, "%s from %d to %d: the counter is %d, but the events used %d",
					b.pass.catalog.features[key.FeatureID].key, key.Period.Start, key.Period.End, stored[id][key], used)
			}
		}
		for key, used := range stored[id] {
			if _, met := proof.counters[key]; !met && used != 0 {
				proof.differs(ruleCounter, "%s from %d to %d: the counter is %d, but no event used anything",
					b.pass.catalog.features[key.FeatureID].key, key.Period.Start, key.Period.End, used)
			}
		}
	}
	return nil
}
