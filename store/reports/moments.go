package reports

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"purser/store/internal/ledger"
	"purser/store/internal/pg"
)

var (
	selectEntryTime = pg.Declare("select time of an entry", `
		SELECT created_at FROM journal WHERE app_id = $1 AND wallet_id = $2 AND seq = $3
		UNION ALL
		SELECT created_at FROM usage_events WHERE app_id = $1 AND wallet_id = $2 AND seq = $3
		UNION ALL
		SELECT p.created_ats[array_position(p.seqs, $3)]
		FROM packed_events p WHERE p.app_id = $1 AND p.wallet_id = $2 AND p.first_seq <= $3 AND p.last_seq >= $3 AND array_position(p.seqs, $3) IS NOT NULL`)

	selectFirstFrom = pg.Declare("select first entry from a moment on", `
		SELECT coalesce(min(found.seq), 0)
		FROM (
			SELECT seq FROM journal WHERE app_id = $1 AND wallet_id = $2 AND seq > $3 AND seq < $4 AND created_at >= $5
			UNION ALL
			SELECT seq FROM usage_events WHERE app_id = $1 AND wallet_id = $2 AND seq > $3 AND seq < $4 AND created_at >= $5
			UNION ALL
			SELECT seq FROM (`+pg.PackedRange+`) packed WHERE created_at >= $5
		) found`)
)

// entriesBefore returns a number from which on every entry of the wallet is later than
// the moment. Entries are in time order up to clockSlack: a batch takes its time before
// it gets the wallet's lock. So the search is for an entry that is later by more.
func (tx appTx) entriesBefore(ctx context.Context, w ledger.Wallet, moment int64) (int64, error) {
	low, high := int64(0), w.LastSeq+1 // high: all from here on are later
	for high-low > 1 {
		middle := low + (high-low)/2
		at, err := pg.Find(ctx, tx, selectEntryTime, pgx.RowTo[int64], fmt.Errorf("store: wallet %s has no entry %d", w.ID, middle), w.ID, middle)
		if err != nil {
			return 0, err
		}
		if at > moment+clockSlack {
			high = middle
		} else {
			low = middle
		}
	}
	return high, nil
}

// maybeFrom returns a number before which every entry is earlier than the moment: the entry
// before it is so by more than the slack.
func (tx appTx) maybeFrom(ctx context.Context, w ledger.Wallet, moment int64) (int64, error) {
	return tx.entriesBefore(ctx, w, moment-2*clockSlack-1)
}

// firstFrom returns the lowest number of an entry of the moment or later. An entry has its
// time before it has the wallet's lock and its number, so a period that ends by times would
// leave out entries that its last balance includes.
func (tx appTx) firstFrom(ctx context.Context, w ledger.Wallet, moment int64) (int64, error) {
	from, err := tx.maybeFrom(ctx, w, moment)
	if err != nil {
		return 0, err
	}
	end := w.LastSeq + 1
	for low, step := from-1, int64(historyRange); low+1 < end; low, step = low+step, min(4*step, maxBalanceRange) {
		found, err := pg.Find(ctx, tx, selectFirstFrom, pgx.RowTo[int64], pg.ErrNoAppState, w.ID, low, min(end, low+1+step), moment)
		if err != nil || found > 0 {
			return found, err
		}
	}
	return end, nil
}
