package verify

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"purser/ids"
	"purser/store/internal/pg"
)

const rulePacked = "a packed event is in one place, and is found by its id"

// packedPage is how many blocks one statement reads: up to as many thousand events.
const packedPage = 20

var (
	verifyPackedEnd = pg.Declare("verify end of packed events", `
		SELECT coalesce(max(r.before), 0), coalesce((SELECT l.last_tx FROM packed_runs l WHERE l.app_id = $1 ORDER BY l.last_tx DESC LIMIT 1), $2::uuid)
		FROM packed_runs r WHERE r.app_id = $1`)

	// The entries of blocks are verified with all others. This is about what a duplicate is
	// found by: its id is listed, and the first block that ends behind it has it; and about the
	// runs' last transaction, behind which reads of new entries expect no block.
	verifyPacked = pg.Declare("verify packed events", `
		SELECT p.wallet_id, p.last_seq, p.events,
			(SELECT count(*) FROM unnest(p.event_ids, p.seqs, p.tx_ids) AS t (id, seq, tx_id)
			WHERE t.id < $5 AND t.seq >= p.first_seq AND t.seq <= p.last_seq AND t.seq > b.last_seq AND t.tx_id >= p.first_tx AND t.tx_id <= p.last_tx AND t.tx_id <= $6
			  AND EXISTS (SELECT 1 FROM (`+pg.PackedPlaces+`) f WHERE f.wallet_id = p.wallet_id AND f.seq = t.seq)
			  AND (SELECT e.seq FROM usage_events e WHERE e.app_id = $1 AND e.event_id = '\x00'::bytea || uuid_send(t.id) LIMIT 1) IS NULL)
		FROM packed_events p CROSS JOIN LATERAL (
			SELECT coalesce((SELECT q.last_seq FROM packed_events q WHERE q.app_id = $1 AND q.wallet_id = p.wallet_id AND q.last_seq < p.last_seq
				ORDER BY q.last_seq DESC LIMIT 1), 0) AS last_seq) b
		WHERE p.app_id = $1 AND (p.wallet_id, p.last_seq) > ($2, $3)
		ORDER BY p.wallet_id, p.last_seq LIMIT $4`)
)

type packedBlock struct {
	Wallet               ids.ID
	LastSeq, Events, Fit int64
}

// packedEnd is behind all packed events.
type packedEnd struct {
	Before int64
	LastTx ids.ID
}

// checkPacked finds packed events that a duplicate would not meet: it would be charged.
func (p *verifyPass) checkPacked(ctx context.Context) error {
	for last, more := (packedBlock{}), true; more; {
		var blocks []packedBlock
		err := p.read(ctx, func(ctx context.Context, tx appTx) error {
			end, err := pg.Find(ctx, tx, verifyPackedEnd, pgx.RowToStructByPos[packedEnd], pg.ErrNoAppState, ids.ID{})
			if err != nil {
				return err
			}
			blocks, err = pg.Collect(ctx, tx, verifyPacked, pgx.RowToStructByPos[packedBlock], last.Wallet, last.LastSeq, packedPage, pg.IDAt(end.Before), end.LastTx)
			return err
		})
		if finished, err := p.finished(ctx, rulePacked, err); err != nil || !finished {
			return err
		}
		for _, b := range blocks {
			if last = b; b.Fit != b.Events {
				p.report(Difference{Check: rulePacked, WalletID: b.Wallet, Detail: fmt.Sprintf("the block that ends with entry %d has %d events, but %d of them are found by their ids and are in no other place",
					b.LastSeq, b.Events, b.Fit)})
			}
		}
		more = len(blocks) == packedPage
		if err := pauseFor(ctx, p.options.Pause); err != nil {
			return err
		}
	}
	return nil
}

// Packing is what packing has done in all applications.
type Packing struct {
	Events     int64 // in blocks
	Bytes      int64 // of the blocks and the lists of their ids
	Skipped    int64 // wallets, in the last run of each application
	FinishedAt int64 // of the last run, by the real clock; 0 for none
}

// Packing reads what finished runs have done. It says nothing about single applications.
func (i Installation) Packing(ctx context.Context) (Packing, error) {
	return pg.FindSQL(ctx, i.db.Pool, "packing", pgx.RowToStructByPos[Packing], `
		SELECT coalesce(sum(events), 0)::bigint, pg_total_relation_size('packed_events') + pg_total_relation_size('packed_ids'),
			coalesce(sum(skipped), 0)::bigint, coalesce(max(finished_at), 0)
		FROM packing_results`)
}
