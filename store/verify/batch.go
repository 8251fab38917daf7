package verify

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"purser/ids"
	"purser/metering"
	"purser/store/internal/pg"
	"purser/store/internal/wire"
)

// Every read of a batch looks its keys up one by one inside LATERAL, so the work is
// that of the wallets at hand whatever the planner knows about the tables.

var (
	// The page is scanned as a whole, and shows the wallets that moved since their
	// seal, or all of them, and always the last one it looked at.
	verifyWalletPage = pg.Declare("verify wallet page", `
		WITH page AS (
			SELECT w.id, w.last_seq, coalesce((SELECT s.seq FROM wallet_seals s WHERE s.app_id = $1 AND s.wallet_id = w.id), 0) AS sealed
			FROM wallets w WHERE w.app_id = $1 AND w.id > $2
			ORDER BY w.id LIMIT $3
		)
		SELECT id, last_seq, sealed, (SELECT count(*) FROM page)
		FROM page
		WHERE $4::boolean OR last_seq <> sealed OR id = (SELECT id FROM page ORDER BY id DESC LIMIT 1)
		ORDER BY id`)

	verifySince = pg.Declare("verify since", `
		SELECT wallet_id, min(seq)
		FROM (
			SELECT wallet_id, seq FROM journal WHERE app_id = $1 AND id >= $2
			UNION ALL
			SELECT wallet_id, seq FROM usage_events WHERE app_id = $1 AND tx_id >= $2
			UNION ALL
			SELECT p.wallet_id, u.seq FROM packed_events p CROSS JOIN LATERAL unnest(p.seqs, p.tx_ids) AS u (seq, tx_id)
			WHERE p.app_id = $1 AND p.last_tx >= $2 AND u.tx_id >= $2 AND`+pg.PackedSince+`
		) made
		GROUP BY wallet_id`)

	verifyReadWallets = pg.Declare("verify read wallets", `
		SELECT w.id, w.identity, w.org_id, w.billing_interval, w.billing_anchor, w.charged, w.last_seq,
			s.seq, s.seal, s.sealed_at, s.billed, s.credit_ids, s.amounts, s.debts,
			EXISTS (SELECT 1 FROM sealed_wallets m WHERE m.app_id = $1 AND m.wallet_id = w.id), p.first_before, p.first_after
		FROM unnest($2::uuid[]) AS t (id) CROSS JOIN LATERAL (
			SELECT id, identity, org_id, billing_interval, billing_anchor, charged, last_seq
			FROM wallets WHERE app_id = $1 AND id = t.id
			LIMIT 1) w LEFT JOIN LATERAL (
			SELECT seq, seal, sealed_at, billed, credit_ids, amounts, debts
			FROM wallet_seals WHERE app_id = $1 AND wallet_id = w.id
			LIMIT 1) s ON true LEFT JOIN LATERAL (
			SELECT first_before, first_after
			FROM pending_seals WHERE app_id = $1 AND wallet_id = w.id
			LIMIT 1) p ON true`)
)

// verifyWork is one batch of a pass, within one snapshot.
type verifyWork struct {
	pass        *verifyPass
	tx          appTx
	ranges      []verifyRange
	proofs      map[ids.ID]*walletProof
	charged     map[ids.ID]bool
	entriesOf   map[ids.ID][]verifiedEntry
	wallets     int64
	entries     int64
	differences []Difference
}

func (b *verifyWork) report(d Difference) { b.differences = append(b.differences, d) }

func (b *verifyWork) run(ctx context.Context, list []verifyRange) error {
	if err := b.readWallets(ctx, list); err != nil {
		return err
	}
	if err := b.readEntries(ctx); err != nil {
		return err
	}
	if err := b.readOpenCounters(ctx); err != nil {
		return err
	}
	for i := range b.ranges {
		r := &b.ranges[i]
		upto := r.proof.seq + b.pass.options.Batch
		entries := b.entriesOf[r.wallet]
		for i := range entries {
			r.proof.take(&entries[i], &b.pass.catalog, b.pass.app.app.Scope.OrgID)
		}
		if !r.proof.done && r.proof.seq < upto {
			r.proof.differs(ruleSequence, "entries %d to %d are missing", r.proof.seq+1, upto)
			r.proof.seq = upto // or the next batch would be this one again
		}
		r.after = r.proof.seq
		b.entries += int64(len(entries))
		if r.proof.done && (len(entries) > 0 || b.pass.options.all()) {
			b.wallets++
		}
	}
	if err := b.checkBilled(ctx); err != nil {
		return err
	}
	if err := b.checkPeriods(ctx); err != nil {
		return err
	}
	return b.finish(ctx)
}

// readWallets begins a proof for each wallet, or carries on the one of the batch
// before, and says how far it is read in this snapshot.
func (b *verifyWork) readWallets(ctx context.Context, list []verifyRange) error {
	known := make(map[ids.ID]verifyRange, len(list))
	var wallets []ids.ID
	for _, r := range list {
		known[r.wallet] = r
		wallets = append(wallets, r.wallet)
	}
	b.proofs, b.charged = make(map[ids.ID]*walletProof, len(list)), make(map[ids.ID]bool, len(list))
	return pg.Each(ctx, b.tx, verifyReadWallets, func(row pgx.CollectableRow) error {
		w, err := b.readVerifiedWallet(row)
		if err != nil {
			return err
		}
		r := known[w.id]
		r.last = w.lastSeq
		switch {
		case r.proof == nil:
			r.proof = b.begin(w, r.after)
		case !r.proof.fromStart && w.seal.seq > r.proof.seq:
			// Another pass has sealed more meanwhile. Sealed counters are as of its seal.
			r.proof = b.begin(w, w.seal.seq)
		default:
			r.proof = r.proof.clone()
		}
		r.proof.report = b.report
		// A wallet that is no longer than two batches is read to its end.
		r.proof.done = w.lastSeq-r.proof.seq <= 2*b.pass.options.Batch
		b.proofs[w.id], b.charged[w.id] = r.proof, w.charged
		b.ranges = append(b.ranges, r)
		return nil
	}, wallets)
}

// begin starts a proof after an entry: from nothing, from the wallet's seal, or from
// somewhere before that.
func (b *verifyWork) begin(w verifiedWallet, after int64) *walletProof {
	p := &walletProof{
		wallet: w.id, identity: w.identity, billing: w.billing, report: b.report,
		seq: after, known: after == 0 || after == w.seal.seq, fromStart: after == 0,
		balances: map[ids.ID]metering.Balance{}, counters: map[metering.CounterKey]int64{}, touched: map[metering.CounterKey]bool{},
		sealedSeq: w.seal.seq, stored: w.seal.seal, sealedAt: w.seal.at, unmarked: w.seal.seq > 0 && !w.sealedBefore,
		pending: w.resealed != nil,
	}
	if p.usageUpto = b.pass.usage.upto; b.pass.options.all() {
		p.usage = usageSums{}
	}
	if w.org != b.pass.app.app.Scope.OrgID {
		p.differs(ruleOrg, "the wallet names the organization %s, expected %s", w.org.Format(ids.Organization), b.pass.app.app.Scope.OrgID.Format(ids.Organization))
	}
	if w.sealedBefore && w.seal.seq == 0 {
		p.differs(ruleSeal, "the wallet's entries were verified and sealed, but the seal is missing")
	}
	if w.resealed != nil && *w.resealed != firstSeal(b.pass.app.app.Scope.AppID, w.id, w.identity) {
		p.differs(ruleSeal, "the wallet has another identity than the one that it was given last")
	}
	if w.halfBilling {
		p.differs(ruleBilling, "the wallet's billing period has an interval or an anchor, and not both")
	}
	switch {
	case after == 0:
		if p.seal = w.first; w.resealed != nil {
			p.renewed = *w.resealed
		}
	case p.known:
		p.seal, p.billed = w.seal.seal, w.seal.billed
		for i, credit := range w.seal.credits {
			p.balances[credit] = metering.Balance{CreditID: credit, Amount: metering.Amount(w.seal.amounts[i]), Debt: metering.Amount(w.seal.debts[i])}
		}
	}
	return p
}

// verifiedWallet is a wallet with its seal.
type verifiedWallet struct {
	id, org      ids.ID
	identity     string
	billing      *metering.BillingPeriod
	halfBilling  bool
	charged      bool
	lastSeq      int64
	seal         storedSeal
	sealedBefore bool
	first        journalSeal  // that the chain begins with
	resealed     *journalSeal // that it will begin with, while its seal is of an earlier identity
}

type storedSeal struct {
	seq     int64 // zero for none
	seal    journalSeal
	at      int64
	billed  int64
	credits []ids.ID
	amounts []pg.Amount
	debts   []pg.Amount
}

func (b *verifyWork) readVerifiedWallet(row pgx.CollectableRow) (w verifiedWallet, err error) {
	var interval *metering.Interval
	var anchor, seq, at, billed *int64
	var seal, before, after []byte
	err = row.Scan(&w.id, &w.identity, &w.org, &interval, &anchor, &w.charged, &w.lastSeq,
		&seq, &seal, &at, &billed, &w.seal.credits, &w.seal.amounts, &w.seal.debts, &w.sealedBefore,
		&before, &after)
	w.halfBilling = (interval == nil) != (anchor == nil)
	if interval != nil && anchor != nil {
		w.billing = &metering.BillingPeriod{Interval: *interval, Anchor: *anchor}
	}
	w.seal.seq, w.seal.at, w.seal.billed = pg.OrZero(seq), pg.OrZero(at), pg.OrZero(billed)
	copy(w.seal.seal[:], seal)
	w.first = firstSeal(b.pass.app.app.Scope.AppID, w.id, w.identity)
	if before != nil {
		w.first, w.resealed = journalSeal(before), (*journalSeal)(after)
	}
	return w, err
}

// rows runs a query whose columns are read in Postgres' binary format.
func (b *verifyWork) rows(ctx context.Context, s pg.Statement, take func(*wire.Row), args ...any) error {
	rows, err := b.tx.Conn.Query(ctx, s.SQL, b.tx.Args(args)...)
	if err != nil {
		return fmt.Errorf("store: %s: %w", s.Name, err)
	}
	defer rows.Close()
	for rows.Next() {
		r := wire.NewRow(rows.RawValues())
		take(&r)
		if err := r.Err(); err != nil {
			return fmt.Errorf("store: %s: %w", s.Name, err)
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("store: %s: %w", s.Name, err)
	}
	return nil
}
