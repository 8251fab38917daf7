package reports

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/jackc/pgx/v5"

	"purser/ids"
	"purser/store/internal/pg"
)

const (
	// Hours with few events are scanned together, up to this many events.
	mergedHoursEvents = 200
	// In a fuller hour, the first window is sized for firstWindowEvents if they were
	// spread evenly; each next one is windowGrowth times longer, up to maxWindowEvents.
	firstWindowEvents = 16
	windowGrowth      = 8
	maxWindowEvents   = 4_000
	// Events come in bursts: a window with more events than this is aborted and retried
	// at an eighth of its length.
	maxScanned = 2_000
	// With a filter a window may scan maxScannedFiltered events, and a list maxSkipped
	// in all, before it returns a partial page. A thousand take about a millisecond.
	maxScannedFiltered = 6_000
	maxSkipped         = 25_000
	// A list returns a partial page after this many windows, too.
	maxWindows = 24
	// hoursPerRead is how many hours are read ahead.
	hoursPerRead = 100
	// A table with fewer rows than this is scanned in one window.
	smallTable = 20_000
)

var (
	// The last hours with events before a transaction, by the hourly stats.
	selectHours = pg.Declare("select hours with events", `
		SELECT oldest_tx, newest_tx, uses FROM activity_hours
		WHERE app_id = $1 AND oldest_tx < $2 ORDER BY hour DESC LIMIT $3`)

	selectLastPacked = pg.Declare("select last packed transaction", `
		SELECT r.last_tx FROM packed_runs r WHERE r.app_id = $1 ORDER BY r.last_tx DESC LIMIT 1`)

	// A window reads only the columns to filter by. The rest is read by key, for the
	// page alone.
	scanEvents = pg.Declare("look at events", `
		WITH met AS (
			SELECT tx_id, wallet_id, seq, price_number, created_at FROM usage_events
			WHERE app_id = $1 AND tx_id >= $2 AND tx_id < $3 LIMIT $4
		)
		SELECT n.met, f.tx_id, f.wallet_id, f.seq
		FROM (SELECT count(*) AS met FROM met) n LEFT JOIN (
			SELECT tx_id, wallet_id, seq FROM met
			WHERE `+ofFeature+` AND created_at >= $7 AND created_at < $8
			ORDER BY tx_id DESC LIMIT $6
		) f ON true`)
)

// activeHour is an hour with events.
type activeHour struct {
	Oldest, Newest ids.ID
	Uses           int64
}

// eventPosition is the key of an event's row.
type eventPosition struct {
	TransactionID, WalletID ids.ID
	Seq                     int64
}

// window is a range of transactions that is scanned as a whole.
type window struct {
	start, end ids.ID
	millis     int64
	limit      int // events that it may scan
}

// eventPositions finds events of a feature, or all events for nil, newest first. It
// returns the next page, or nil at the end.
func (tx appTx) eventPositions(ctx context.Context, q EventQuery, feature *ids.ID) (list []eventPosition, next *pg.Page, err error) {
	start, stop, err := tx.eventRange(ctx, q)
	if err != nil {
		return nil, nil, err
	}
	floor, err := tx.unpackedSince(ctx)
	if err != nil {
		return nil, nil, err
	}
	if pg.LessID(stop, floor) {
		stop = floor
	}
	scan, err := tx.newReverseScan(ctx, start)
	if err != nil {
		return nil, nil, err
	}
	skipped := 0
	for range maxWindows {
		l, err := scan.next(ctx, tx, feature != nil || q.From != 0)
		if err != nil || l == nil || !pg.LessID(stop, l.end) {
			return list, nil, err
		}
		if pg.LessID(l.start, floor) {
			l.start = floor
		}
		found, scanned, err := tx.scanWindow(ctx, *l, q, feature, q.OneMore()-len(list))
		if err != nil {
			return nil, nil, err
		}
		if skipped += scanned; scanned == l.limit {
			scan.shorten(*l)
			continue
		}
		scan.advance(*l)
		var more bool
		if list, more = pg.Cut(append(list, found...), q.Limit); more {
			return list, &pg.Page{Before: list[len(list)-1].TransactionID, Limit: q.Limit}, nil
		}
		if skipped >= maxSkipped {
			break
		}
	}
	if scan.end.IsZero() || !pg.LessID(stop, scan.end) {
		return list, nil, nil
	}
	return list, &pg.Page{Before: scan.end, Limit: q.Limit}, nil
}

// eventRange is the range of ids in which events of the query's time can be. Ids have the
// real time; the application's clock is ahead of it, never behind.
func (tx appTx) eventRange(ctx context.Context, q EventQuery) (before, from ids.ID, err error) {
	before = q.Start()
	if end := pg.IDAt(q.to() + clockSlack); pg.LessID(end, before) {
		before = end
	}
	if q.From == 0 {
		return before, from, nil
	}
	offset, err := pg.Find(ctx, tx, selectClockOffset, pgx.RowTo[int64], pg.ErrNoAppState)
	return before, pg.IDAt(q.From - offset - clockSlack), err
}

// PackedUntil is the time of the last packed event, with which lists of all customers end;
// 0 for none. It is real time, as in ids.
func (a App) PackedUntil(ctx context.Context) (int64, error) {
	return pg.Return(ctx, a.snapshot, func(ctx context.Context, tx appTx) (int64, error) {
		first, err := tx.unpackedSince(ctx)
		return pg.TimeOfID(first), err
	})
}

// unpackedSince is the first transaction after all packed ones: the list of all customers
// ends there, because blocks are of one wallet each.
func (tx appTx) unpackedSince(ctx context.Context) (id ids.ID, err error) {
	packed, err := pg.Collect(ctx, tx, selectLastPacked, pgx.RowTo[ids.ID])
	if err == nil && len(packed) == 1 && !packed[0].IsZero() {
		id = pg.NextID(packed[0])
	}
	return id, err
}

// scanWindow reads the newest events of a window and how many it scanned.
func (tx appTx) scanWindow(ctx context.Context, l window, q EventQuery, feature *ids.ID, limit int) (list []eventPosition, scanned int, err error) {
	err = pg.Each(ctx, tx, scanEvents, func(row pgx.CollectableRow) error {
		var transaction, wallet *ids.ID
		var seq *int64
		err := row.Scan(&scanned, &transaction, &wallet, &seq)
		if transaction != nil {
			list = append(list, eventPosition{*transaction, pg.OrZero(wallet), pg.OrZero(seq)})
		}
		return err
	}, l.start, l.end, l.limit, feature, limit, q.From, q.to())
	slices.SortFunc(list, func(a, b eventPosition) int { return bytes.Compare(b.TransactionID[:], a.TransactionID[:]) })
	return list, scanned, err
}

// reverseScan goes back in time, window by window, without gaps. The hourly stats only
// size the windows: events that they miss are found all the same.
type reverseScan struct {
	end     ids.ID       // everything from here on was scanned
	whole   bool         // the table is small: one window
	hours   []activeHour // hours before the end that were read
	read    bool         // all hours were read
	hour    ids.ID       // the oldest transaction of the hour being scanned
	millis  int64        // length of the next window into it
	longest int64        // limit after an aborted window; 0 for none
}

func (tx appTx) newReverseScan(ctx context.Context, end ids.ID) (*reverseScan, error) {
	if tx.Distributed { // the coordinator's own table is empty
		return &reverseScan{end: end}, nil
	}
	var rows float64
	if err := tx.Conn.QueryRow(ctx, "SELECT reltuples FROM pg_class WHERE oid = 'usage_events'::regclass").Scan(&rows); err != nil {
		return nil, fmt.Errorf("store: events: %w", err)
	}
	return &reverseScan{end: end, whole: rows < smallTable}, nil
}

// next is the next window, or nil at the end.
func (b *reverseScan) next(ctx context.Context, tx appTx, filtered bool) (*window, error) {
	if b.end.IsZero() {
		return nil, nil
	}
	l := &window{end: b.end, limit: maxScanned}
	if filtered {
		l.limit = maxScannedFiltered
	}
	if b.whole {
		l.limit = smallTable * windowGrowth // the table may have grown since it was counted
		return l, nil
	}
	if err := b.readHours(ctx, tx); err != nil {
		return nil, err
	}
	latest := min(pg.TimeOfID(b.end), pg.TimeOfID(ids.New())+clockSlack)
	if len(b.hours) > 0 {
		// The time after the last event of the stats is a window of its own: it is
		// mostly empty, and its length says nothing about the hour before.
		if l.start = pg.NextID(b.hours[0].Newest); !pg.LessID(l.start, b.end) {
			l.start = b.windowStart(b.hours, latest)
		}
	}
	if earliest := pg.IDAt(latest - b.longest); b.longest > 0 && pg.LessID(l.start, earliest) {
		l.start = earliest
	}
	if l.millis = latest - pg.TimeOfID(l.start); l.millis <= 1 {
		l.limit = math.MaxInt32 // it cannot be shorter
	}
	return l, nil
}

// readHours reads the hours before the end, when the ones read so far are used up.
func (b *reverseScan) readHours(ctx context.Context, tx appTx) (err error) {
	for len(b.hours) > 0 && !pg.LessID(b.hours[0].Oldest, b.end) {
		b.hours = b.hours[1:]
	}
	if len(b.hours) == 0 && !b.read {
		b.hours, err = pg.Collect(ctx, tx, selectHours, pgx.RowToStructByPos[activeHour], b.end, hoursPerRead)
		b.read = len(b.hours) < hoursPerRead
	}
	return err
}

// windowStart is the start of a window into the first of the hours, or over several
// hours with few events.
func (b *reverseScan) windowStart(hours []activeHour, latest int64) ids.ID {
	if events := hours[0].Uses; events <= mergedHoursEvents {
		start := hours[0].Oldest
		for _, h := range hours[1:] {
			if events += h.Uses; events > mergedHoursEvents {
				break
			}
			start = h.Oldest
		}
		return start
	}
	hour := hours[0]
	evenly := func(events int64) int64 { return max(1, events*hourMillis/hour.Uses) }
	if b.hour != hour.Oldest {
		b.hour, b.millis, b.longest = hour.Oldest, evenly(firstWindowEvents), 0
	}
	start := pg.IDAt(latest - min(b.millis, evenly(maxWindowEvents)))
	if pg.LessID(start, hour.Oldest) {
		return hour.Oldest
	}
	return start
}

// advance moves past a scanned window.
func (b *reverseScan) advance(l window) {
	b.end = l.start
	b.millis = min(b.millis*windowGrowth, hourMillis)
	b.longest *= 2
}

// shorten retries after a window with too many events.
func (b *reverseScan) shorten(l window) {
	if b.whole {
		b.whole = false
		return
	}
	b.longest = max(1, l.millis/windowGrowth)
}
