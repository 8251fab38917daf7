package packing

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"purser/ids"
	"purser/store/internal/ledger"
	"purser/store/internal/pg"
)

// wallet is a wallet as far as packing depends on it.
type wallet struct {
	ID       ids.ID
	Identity string
	LastSeq  int64
	Sealed   int64 // entries up to this number were verified and sealed
	Packed   int64 // the number of its last packed event
}

// maxLocked is how many wallets may stay locked one after the other for all tries of a transaction, of
// some seconds each. More are a sign that a whole table is locked.
const maxLocked = 5

// moveAll moves the events of a run, wallet by wallet. A wallet with an error is skipped: what
// is left of it stays in usage_events, and its ids stay listed, which says nothing by itself.
func (w worker) moveAll(ctx context.Context, r run) (moved, skipped int64, err error) {
	locked := 0 // wallets since one was moved
	for after := (ids.ID{}); ; {
		page, err := pg.Return(ctx, w.transact, func(ctx context.Context, tx *pg.Tx) ([]wallet, error) {
			return pg.Collect(ctx, tx, listWallets, pgx.RowToStructByPos[wallet], after, walletsPerRead)
		})
		if err != nil || len(page) == 0 {
			return moved, skipped, err
		}
		for _, of := range page {
			n, err := w.moveWallet(ctx, r, of)
			if moved += n; n > 0 {
				locked = 0
			}
			if err == nil {
				continue
			}
			if pg.WasRolledBack(err) {
				locked++
			}
			if locked == maxLocked {
				return moved, skipped, runError{err}
			}
			if w.Ends(ctx, err) {
				return moved, skipped, err
			}
			if skipped++; w.Skipped != nil {
				w.Skipped(of.ID, err)
			}
		}
		after = page[len(page)-1].ID
	}
}

// moveWallet moves the events of a wallet, a block in each transaction. Events before its
// last block stay where they are: the blocks of a wallet follow each other.
func (w worker) moveWallet(ctx context.Context, r run, of wallet) (moved int64, err error) {
	for after := of.Packed; after < of.LastSeq; {
		began := time.Now()
		n, next, err := w.moveBlock(ctx, r, of, after)
		if err != nil {
			return moved, err
		}
		if moved += n; next == 0 {
			return moved, nil
		}
		if after = next; n == 0 {
			continue
		}
		if err := w.step("moved"); err != nil {
			return moved, err
		}
		if err := pause(ctx, min(maxPause, time.Since(began))); err != nil {
			return moved, err
		}
	}
	return moved, nil
}

// moveBlock moves at most one block after a number, and returns the number to continue
// after, or 0 when the wallet has no more.
func (w worker) moveBlock(ctx context.Context, r run, of wallet, after int64) (moved, next int64, err error) {
	limit := storedID(pg.IDAt(r.Before))
	err = w.transact(ctx, func(ctx context.Context, tx *pg.Tx) error {
		moved, next = 0, after+walletWindow
		events, err := pg.Collect(ctx, tx, listPackable, readPackable, of.ID, after, next, r.Before, limit, MaxBlock)
		if err != nil {
			return err
		}
		if len(events) < MinBlock {
			rest, err := pg.Collect(ctx, tx, selectNextTime, pgx.RowTo[int64], of.ID, after)
			if len(rest) == 0 || rest[0] >= r.Before {
				next = 0
			}
			return err
		}
		seqs, places, latest := make([]int64, len(events)), make([]place, len(events)), ids.ID{}
		for i, e := range events {
			seqs[i], places[i] = e.seq, place{id: e.id}
			if bytes.Compare(e.tx[:], latest[:]) > 0 {
				latest = e.tx
			}
		}
		last := seqs[len(seqs)-1]
		if last > of.Sealed {
			return fmt.Errorf("entry %d is not verified and sealed: run 'purser verify --new' first", last)
		}
		if err := w.lock(ctx, tx, &r); err != nil {
			return err
		}
		// Nothing changes these rows. The lock is for those who read the wallet and then
		// write: they see its events in one place.
		locked, err := ledger.In(tx).LockWallets(ctx, of.Identity)
		if err != nil {
			return err
		}
		if len(locked) != 1 || locked[0].ID != of.ID {
			return fmt.Errorf("its identity has just been changed: run it again")
		}
		listed, err := listedIDs(ctx, tx, places)
		if err != nil {
			return err
		}
		for _, e := range places {
			if !listed[e.id] {
				return fmt.Errorf("the event %s is not in the list of ids, so it stays until a run of a later month lists it", e.id)
			}
		}
		if err := tx.Exec(ctx, insertBlock, 1, of.ID, seqs); err != nil {
			return err
		}
		if err := tx.Exec(ctx, deleteEvents, int64(len(seqs)), of.ID, seqs); err != nil {
			return err
		}
		if err := w.step("moving"); err != nil {
			return err
		}
		moved, next = int64(len(seqs)), last
		return tx.Exec(ctx, countMoved, 1, r.Number, moved, latest)
	})
	return moved, next, err
}

// packableEvent is an event that can be moved.
type packableEvent struct {
	seq    int64
	id, tx ids.ID
}

func readPackable(row pgx.CollectableRow) (e packableEvent, err error) {
	var stored []byte
	if err := row.Scan(&e.seq, &stored, &e.tx); err != nil {
		return e, err
	}
	id, ok := pg.PackableID(stored)
	if !ok {
		err = fmt.Errorf("%x is no id that is packed", stored)
	}
	e.id = id
	return e, err
}
