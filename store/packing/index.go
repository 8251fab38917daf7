package packing

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"purser/ids"
	"purser/store/internal/pg"
)

// place is where the event of an id is.
type place struct {
	id, wallet ids.ID
	seq        int64
}

// index lists the next ids of a run, those that no run has listed yet. The events are older
// than the run, so none is added behind what was read.
func (w worker) index(ctx context.Context, r *run) error {
	return w.transact(ctx, func(ctx context.Context, tx *pg.Tx) error {
		if err := w.lock(ctx, tx, r); err != nil || r.Indexed {
			return err
		}
		places, read, err := nextIDs(ctx, tx, r)
		if err != nil {
			return err
		}
		if places, err = unlisted(ctx, tx, places); err != nil {
			return err
		}
		for block := range slices.Chunk(places, idsPerBlock) {
			if err := tx.Exec(ctx, insertIDs, 1, encodeIDs(r.Number, block)); err != nil {
				return err
			}
		}
		r.Indexed = read < idsPerRead
		return tx.Exec(ctx, advanceIndex, 1, r.Number, r.Scanned, r.Indexed)
	})
}

// lock locks the run's row and reads how far it is.
func (w worker) lock(ctx context.Context, tx *pg.Tx, r *run) error {
	type state struct {
		Scanned       ids.ID
		Indexed, Done bool
	}
	s, err := pg.Find(ctx, tx, lockRun, pgx.RowToStructByPos[state], pg.ErrNoAppState, r.Number)
	r.Scanned, r.Indexed = s.Scanned, s.Indexed
	if err == nil && s.Done {
		err = runError{fmt.Errorf("another process has finished run %d", r.Number)}
	}
	return err
}

// nextIDs reads ids after those that the run has scanned, and returns how many it read.
func nextIDs(ctx context.Context, tx *pg.Tx, r *run) (list []place, read int, err error) {
	err = pg.Each(ctx, tx, listIDs, func(row pgx.CollectableRow) error {
		var stored []byte
		var e place
		var created int64
		if err := row.Scan(&stored, &e.wallet, &e.seq, &created); err != nil {
			return err
		}
		read++
		// Other UUIDs are between these; texts are behind the range.
		id, packable := pg.PackableID(stored)
		if len(stored) == len(id)+1 {
			r.Scanned = id
		}
		if e.id = id; packable && created < r.Before {
			list = append(list, e)
		}
		return nil
	}, storedID(r.Scanned), storedID(pg.IDAt(r.Before)), idsPerRead)
	return list, read, err
}

func storedID(id ids.ID) []byte { return append([]byte{0}, id[:]...) }

// unlisted leaves out ids that an earlier run has listed and whose events it did not move.
func unlisted(ctx context.Context, tx *pg.Tx, places []place) ([]place, error) {
	listed, err := listedIDs(ctx, tx, places)
	return slices.DeleteFunc(places, func(e place) bool { return listed[e.id] }), err
}

func listedIDs(ctx context.Context, tx *pg.Tx, places []place) (map[ids.ID]bool, error) {
	wanted := make([]ids.ID, len(places))
	for i, e := range places {
		wanted[i] = e.id
	}
	found, err := pg.Collect(ctx, tx, listIndexed, pgx.RowTo[ids.ID], wanted)
	listed := make(map[ids.ID]bool, len(found))
	for _, id := range found {
		listed[id] = true
	}
	return listed, err
}

// encodeIDs has each wallet of the block once.
func encodeIDs(run int64, block []place) pg.Named {
	var list, wallets []ids.ID
	var refs []int16
	var seqs []int64
	for _, e := range block {
		at := slices.Index(wallets, e.wallet)
		if at < 0 {
			at, wallets = len(wallets), append(wallets, e.wallet)
		}
		list, refs, seqs = append(list, e.id), append(refs, int16(at+1)), append(seqs, e.seq)
	}
	return pg.Named{"run": run, "last_id": list[len(list)-1], "ids": list, "wallet_ids": wallets, "refs": refs, "seqs": seqs}
}
