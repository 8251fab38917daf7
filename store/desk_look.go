package store

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/jackc/pgx/v5"

	"purser/ids"
)

const (
	// Hours that had few events are looked at together, up to so many events.
	gatheredEvents = 200
	// In a fuller hour, the first look would find so many events, were they spread
	// evenly over it; each next one is longer by so much, until it would find so many.
	firstLookEvents = 16
	lookGrowth      = 8
	maxLookEvents   = 4_000
	// Events come in bursts, so a look that meets more than these is broken off, and
	// made again at an eighth of its length.
	maxMet = 2_000
	// With a filter a look may pass over so many, and a list over so many in all, before
	// the reader decides whether to go on. Each thousand takes about a millisecond.
	maxMetFiltered = 6_000
	maxPassed      = 25_000
	// So does the reader after so many looks.
	maxLooks = 24
	// hoursAtOnce is how many hours are read ahead.
	hoursAtOnce = 100
	// A table with fewer rows than this is looked through at once.
	smallTable = 20_000
)

var (
	// The last hours that had events before a transaction, by the figures.
	selectHours = declare("select hours with events", `
		SELECT oldest_tx, newest_tx, uses FROM activity_hours
		WHERE app_id = $1 AND oldest_tx < $2 ORDER BY hour DESC LIMIT $3`)

	// Only what tells events apart is read of all that a look meets: the rest is found
	// by its key, for the page alone.
	lookAtEvents = declare("look at events", `
		WITH met AS (
			SELECT tx_id, wallet_id, seq, price_number FROM usage_events
			WHERE app_id = $1 AND tx_id >= $2 AND tx_id < $3 LIMIT $4
		)
		SELECT n.met, f.tx_id, f.wallet_id, f.seq
		FROM (SELECT count(*) AS met FROM met) n LEFT JOIN (
			SELECT tx_id, wallet_id, seq FROM met WHERE $5::bigint[] IS NULL OR price_number = ANY ($5)
			ORDER BY tx_id DESC LIMIT $6
		) f ON true`)
)

// activeHour is an hour in which there were events.
type activeHour struct {
	Oldest, Newest ids.ID
	Uses           int64
}

// eventPlace is where an event is found at once.
type eventPlace struct {
	TransactionID, WalletID ids.ID
	Seq                     int64
}

// look is a stretch of transactions that is read as a whole.
type look struct {
	start, end ids.ID
	millis     int64
	most       int // events that it may meet
}

// placesBackward finds events of these prices, or of all when there are none given,
// from the newest on, and gives the page behind them, or nil when there is none.
func (tx appTx) placesBackward(ctx context.Context, q EventQuery, prices []int64) (list []eventPlace, next *Page, err error) {
	back, err := tx.newBackward(ctx, q.before())
	if err != nil {
		return nil, nil, err
	}
	passed := 0
	for range maxLooks {
		l, err := back.next(ctx, tx, prices != nil)
		if err != nil || l == nil {
			return list, nil, err
		}
		found, met, err := tx.look(ctx, *l, prices, q.oneMore()-len(list))
		if err != nil {
			return nil, nil, err
		}
		if passed += met; met == l.most {
			back.shorten(*l)
			continue
		}
		back.took(*l)
		var more bool
		if list, more = cut(append(list, found...), q.Limit); more {
			return list, &Page{Before: list[len(list)-1].TransactionID, Limit: q.Limit}, nil
		}
		if passed >= maxPassed {
			break
		}
	}
	if back.end.IsZero() {
		return list, nil, nil
	}
	return list, &Page{Before: back.end, Limit: q.Limit}, nil
}

// look reads the newest events of a stretch, and tells how many it met.
func (tx appTx) look(ctx context.Context, l look, prices []int64, limit int) (list []eventPlace, met int, err error) {
	_, err = collect(ctx, tx, lookAtEvents, func(row pgx.CollectableRow) (struct{}, error) {
		var transaction, wallet *ids.ID
		var seq *int64
		err := row.Scan(&met, &transaction, &wallet, &seq)
		if transaction != nil {
			list = append(list, eventPlace{*transaction, orZero(wallet), orZero(seq)})
		}
		return struct{}{}, err
	}, l.start, l.end, l.most, prices, limit)
	slices.SortFunc(list, func(a, b eventPlace) int { return bytes.Compare(b.TransactionID[:], a.TransactionID[:]) })
	return list, met, err
}

// backward goes back in time, look by look, without a gap. The figures of hours only
// say how long a look should be: what they have missed is met all the same.
type backward struct {
	end     ids.ID       // everything from here on was looked at
	whole   bool         // all at once
	hours   []activeHour // that began before the end, as far as they were read
	read    bool         // to the first of them
	hour    ids.ID       // the oldest of the hour that is looked into
	millis  int64        // how long the next look into it is
	longest int64        // after one was too long; 0 for as long as the figures say
}

func (tx appTx) newBackward(ctx context.Context, end ids.ID) (*backward, error) {
	var rows float64
	if err := tx.conn.QueryRow(ctx, "SELECT reltuples FROM pg_class WHERE oid = 'usage_events'::regclass").Scan(&rows); err != nil {
		return nil, fmt.Errorf("store: events: %w", err)
	}
	return &backward{end: end, whole: rows < smallTable}, nil
}

// next is the next look, or nil when there is nothing before.
func (b *backward) next(ctx context.Context, tx appTx, filtered bool) (*look, error) {
	if b.end.IsZero() {
		return nil, nil
	}
	l := &look{end: b.end, most: maxMet}
	if filtered {
		l.most = maxMetFiltered
	}
	if b.whole {
		l.most = smallTable * lookGrowth // the table may have grown since it was counted
		return l, nil
	}
	if err := b.readHours(ctx, tx); err != nil {
		return nil, err
	}
	latest := min(momentOf(b.end), momentOf(ids.New())+clockSlack)
	if len(b.hours) > 0 {
		// What came after the last event that the figures know is looked at by itself:
		// mostly that is nothing, and its length says nothing of the hour before.
		if l.start = laterID(b.hours[0].Newest); !lessID(l.start, b.end) {
			l.start = b.startInto(b.hours, latest)
		}
	}
	if earliest := idAt(latest - b.longest); b.longest > 0 && lessID(l.start, earliest) {
		l.start = earliest
	}
	if l.millis = latest - momentOf(l.start); l.millis <= 1 {
		l.most = math.MaxInt32 // it cannot be shorter
	}
	return l, nil
}

// readHours reads the hours before the end, when those that were read are behind.
func (b *backward) readHours(ctx context.Context, tx appTx) (err error) {
	for len(b.hours) > 0 && !lessID(b.hours[0].Oldest, b.end) {
		b.hours = b.hours[1:]
	}
	if len(b.hours) == 0 && !b.read {
		b.hours, err = collect(ctx, tx, selectHours, pgx.RowToStructByPos[activeHour], b.end, hoursAtOnce)
		b.read = len(b.hours) < hoursAtOnce
	}
	return err
}

// startInto is where a look starts that goes into the first of the hours, or through
// several that had few events.
func (b *backward) startInto(hours []activeHour, latest int64) ids.ID {
	if events := hours[0].Uses; events <= gatheredEvents {
		start := hours[0].Oldest
		for _, h := range hours[1:] {
			if events += h.Uses; events > gatheredEvents {
				break
			}
			start = h.Oldest
		}
		return start
	}
	hour := hours[0]
	evenly := func(events int64) int64 { return max(1, events*hourMillis/hour.Uses) }
	if b.hour != hour.Oldest {
		b.hour, b.millis, b.longest = hour.Oldest, evenly(firstLookEvents), 0
	}
	start := idAt(latest - min(b.millis, evenly(maxLookEvents)))
	if lessID(start, hour.Oldest) {
		return hour.Oldest
	}
	return start
}

// took goes on before a look.
func (b *backward) took(l look) {
	b.end = l.start
	b.millis = min(b.millis*lookGrowth, hourMillis)
	b.longest *= 2
}

// shorten tries again after a look that met too many.
func (b *backward) shorten(l look) {
	if b.whole {
		b.whole = false
		return
	}
	b.longest = max(1, l.millis/lookGrowth)
}
