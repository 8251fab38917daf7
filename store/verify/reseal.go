package verify

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/jackc/pgx/v5"

	"purser/ids"
	"purser/store/internal/ledger"
	"purser/store/internal/pg"
	"purser/store/internal/wire"
)

// The first hash of a wallet's chain is over its identity. When the identity changes,
// the stored seal stays as it is and pending_seals says what it began with, in the
// transaction of the change. A job then computes both chains over the sealed entries and
// replaces the seal, but only if the entries still have the old one: what was changed
// after it was sealed stays found, and an erased identity can't be guessed from the seal.
// Release 0.1.0 knows no pending seals: a wallet without a seal gets one of its new identity.

var (
	putPendingSeal = pg.Declare("put pending seal", `
		INSERT INTO pending_seals (app_id, wallet_id, org_id, first_before, first_after) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (app_id, wallet_id) DO UPDATE SET first_after = excluded.first_after`)

	selectPendingSeal = pg.Declare("select pending seal", `
		SELECT p.first_before, p.first_after, p.progress, coalesce(s.seq, 0), s.seal
		FROM pending_seals p LEFT JOIN wallet_seals s ON s.app_id = $1 AND s.wallet_id = p.wallet_id
		WHERE p.app_id = $1 AND p.wallet_id = $2`)

	// Nothing is kept when the identity has changed again.
	keepProgress = pg.Declare("keep progress of pending seal", `
		UPDATE pending_seals SET progress = $4 WHERE app_id = $1 AND wallet_id = $2 AND first_after = $3`)

	deletePendingSeal = pg.Declare("delete pending seal", `
		DELETE FROM pending_seals WHERE app_id = $1 AND wallet_id = $2 AND first_before = $3 AND first_after = $4`)

	replaceSeal = pg.Declare("replace seal", `
		UPDATE wallet_seals SET seal = $5 WHERE app_id = $1 AND wallet_id = $2 AND seq = $3 AND seal = $4`)
)

// IdentityChanged notes, in the transaction that gives a wallet another identity, that
// its seal is of the earlier one.
func IdentityChanged(ctx context.Context, tx ledger.Tx, wallet ids.ID, before, after string) error {
	app := tx.Scope.AppID
	first, next := firstSeal(app, wallet, before), firstSeal(app, wallet, after)
	return tx.Exec(ctx, putPendingSeal, 1, wallet, tx.Scope.OrgID, first[:], next[:])
}

// pendingSeal is a wallet whose seal is of an earlier identity.
type pendingSeal struct {
	before, after journalSeal // what the chain begins with
	seq           int64       // of the stored seal; zero for none
	seal          journalSeal
	chain         resealing // how far they were read
}

func readPendingSeal(row pgx.CollectableRow) (p pendingSeal, err error) {
	var before, after, progress, seal []byte
	err = row.Scan(&before, &after, &progress, &p.seq, &seal)
	copy(p.before[:], before)
	copy(p.after[:], after)
	copy(p.seal[:], seal)
	// After the identity has changed again, the progress is of another one.
	if p.chain = readProgress(progress); !bytes.HasPrefix(progress, after) || p.chain.seq > p.seq {
		p.restart()
	}
	return p, err
}

func (p *pendingSeal) restart() { p.chain = resealing{old: p.before, renewed: p.after} }

// errNotPending means that the seal of a wallet is of its current identity.
var errNotPending = errors.New("verify: no seal is pending")

// ResealInput is how Reseal works.
type ResealInput struct {
	Last    bool  // no pass that began before the change of identity can still write a seal
	Restart bool  // begins with the first entry, as always when Most is enough for all of them
	Most    int64 // entries to read
}

// Reseal seals the entries of a wallet with its current identity, and reports whether
// it is done: otherwise it goes on there the next time. It fails when they differ from the
// stored seal, which stays then; of a large wallet only Restart reads them again. A wallet
// without a seal needs none.
func (a App) Reseal(ctx context.Context, wallet ids.ID, in ResealInput) (done bool, err error) {
	for ; ; in.Restart = false {
		pending, err := pg.FindOne(ctx, a.app, selectPendingSeal, readPendingSeal, errNotPending, wallet)
		switch {
		case errors.Is(err, errNotPending):
			return true, nil
		case err != nil:
			return false, err
		case pending.seq == 0 && !in.Last:
			return true, nil
		case in.Restart || pending.seq <= in.Most:
			pending.restart()
		}
		chain := &pending.chain
		for chain.seq < pending.seq {
			if in.Most == 0 {
				return false, nil
			}
			size := min(in.Most, pending.seq-chain.seq, verifyBatch)
			if err := a.extend(ctx, wallet, chain, chain.seq+size); err != nil {
				return false, err
			}
			if err := a.app.ExecAny(ctx, keepProgress, wallet, pending.after[:], chain.progress(pending.after)); err != nil {
				return false, err
			}
			in.Most -= size
		}
		if pending.seq > 0 && chain.old != pending.seal && chain.renewed != pending.seal {
			return false, fmt.Errorf("verify: the entries of %s differ from their seal, which was kept", wallet.Format(ids.Wallet))
		}
		err = a.transact(ctx, func(ctx context.Context, tx appTx) error { return tx.replaceSeal(ctx, wallet, pending) })
		if !errors.Is(err, errSealMoved) {
			return err == nil, err
		}
	}
}

// errSealMoved means that the identity changed again, or a pass has sealed more entries.
var errSealMoved = errors.New("verify: the seal has moved")

func (tx appTx) replaceSeal(ctx context.Context, wallet ids.ID, pending pendingSeal) error {
	ended, err := tx.ExecAny(ctx, deletePendingSeal, wallet, pending.before[:], pending.after[:])
	if err != nil || ended == 0 {
		return errors.Join(err, errSealMoved)
	}
	if pending.seq == 0 {
		return nil
	}
	replaced, err := tx.ExecAny(ctx, replaceSeal, wallet, pending.seq, pending.seal[:], pending.chain.renewed[:])
	if err != nil || replaced == 0 {
		return errors.Join(err, errSealMoved)
	}
	return nil
}

// resealing is both chains of a wallet up to an entry.
type resealing struct {
	seq          int64
	old, renewed journalSeal
	buf          []byte
}

// progress is what is stored of the chains, after what the second one begins with.
func (r *resealing) progress(after journalSeal) []byte {
	return binary.BigEndian.AppendUint64(slices.Concat(after[:], r.old[:], r.renewed[:]), uint64(r.seq))
}

func readProgress(stored []byte) (r resealing) {
	const size = len(r.old)
	if len(stored) == 3*size+8 {
		r.old, r.renewed = journalSeal(stored[size:2*size]), journalSeal(stored[2*size:3*size])
		r.seq = int64(binary.BigEndian.Uint64(stored[3*size:]))
	}
	return r
}

// extend reads the entries up to a number into both chains.
func (a App) extend(ctx context.Context, wallet ids.ID, chain *resealing, upto int64) error {
	var entries []verifiedEntry
	err := a.snapshot(ctx, func(ctx context.Context, tx appTx) error {
		if err := tx.setForVerification(ctx); err != nil {
			return err
		}
		entries = nil
		b := verifyWork{tx: tx}
		one, after, last := []ids.ID{wallet}, []int64{chain.seq}, []int64{upto}
		if err := b.rows(ctx, verifyReadEvents, func(r *wire.Row) {
			var e verifiedEntry
			e.readEvent(r, tx.Scope.OrgID)
			entries = append(entries, e)
		}, one, after, last, math.MaxInt32); err != nil {
			return err
		}
		return b.rows(ctx, verifyReadJournal, func(r *wire.Row) {
			var e verifiedEntry
			e.readJournal(r)
			entries = append(entries, e)
		}, one, after, last, math.MaxInt32)
	})
	if err != nil {
		return err
	}
	slices.SortStableFunc(entries, func(a, b verifiedEntry) int { return compareSeq(&a, &b) })
	for i := range entries {
		chain.old, chain.buf = chain.old.next(chain.buf, &entries[i])
		chain.renewed, chain.buf = chain.renewed.next(chain.buf, &entries[i])
	}
	chain.seq = upto // a missing entry gives another seal
	return nil
}
