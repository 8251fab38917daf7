package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"purser/ids"
)

const (
	// The first look back into an hour has about so many events, were they spread
	// evenly over it; each next one is longer by so much.
	passedByFirstLook = 100
	lookGrowth        = 4
	// A look passes over about so many events at most, and a list over so many. Fifty
	// thousand are read in some twenty milliseconds.
	maxPassedByLook = 20_000
	maxPassed       = 50_000
	// After so many looks, too, the reader decides whether to go on.
	maxLooks = 24
	// What other nodes have counted is written down before so long.
	uncountedMillis = 2 * int64(figuresPause/time.Millisecond)
	// A table with fewer rows than this is looked through at once.
	smallTable = 20_000
)

// The last hour that had events before a transaction, by the figures.
var selectLeap = declare("select leap", `
	SELECT oldest_tx, newest_tx, uses FROM activity_hours
	WHERE app_id = $1 AND oldest_tx < $2 ORDER BY hour DESC LIMIT 1`)

// activeHour is an hour in which there were events.
type activeHour struct {
	Oldest, Newest ids.ID
	Uses           int64
}

// look is a stretch of transactions that is read as a whole.
type look struct {
	start, end ids.ID
	passes     int64 // about so many events
}

// eventsBackward reads events of these prices, or of all when there are none given,
// from the newest on.
func (tx appTx) eventsBackward(ctx context.Context, q EventQuery, prices []int64) (list []EventFound, next *Page, err error) {
	var rows float64
	if err := tx.conn.QueryRow(ctx, "SELECT reltuples FROM pg_class WHERE oid = 'usage_events'::regclass").Scan(&rows); err != nil {
		return nil, nil, fmt.Errorf("store: events: %w", err)
	}
	back := backward{end: q.before(), newest: q.Before.IsZero(), whole: rows < smallTable}
	var passed int64
	for range maxLooks {
		l, err := back.next(ctx, tx)
		if err != nil || l == nil {
			return list, nil, err
		}
		found, err := collect(ctx, tx, listEventsBetween, readEventFound, l.start, l.end, q.Limit+1-len(list), prices)
		if err != nil {
			return nil, nil, err
		}
		var more bool
		if list, more = cut(append(list, found...), q.Limit); more {
			return list, &Page{Before: list[len(list)-1].TransactionID, Limit: q.Limit}, nil
		}
		if passed += l.passes; passed >= maxPassed {
			break
		}
	}
	return list, &Page{Before: back.end, Limit: q.Limit}, nil
}

// backward goes back in time, look by look. Time without events is leapt over.
type backward struct {
	end    ids.ID // everything from here on was looked at
	newest bool   // nothing was, as yet
	whole  bool   // all at once
	hour   ids.ID // the oldest of the hour that is looked at
	millis int64  // how long the last look into it was
}

// next is the next look, or nil when there is nothing before.
func (b *backward) next(ctx context.Context, tx appTx) (*look, error) {
	if b.whole {
		if b.end.IsZero() {
			return nil, nil
		}
		all := &look{end: b.end}
		b.end = ids.ID{}
		return all, nil
	}
	hours, err := collect(ctx, tx, selectLeap, pgx.RowToStructByPos[activeHour], b.end)
	if err != nil {
		return nil, err
	}
	l := &look{end: b.end}
	if b.newest {
		// What is not counted yet comes first: with the latest that is, if that is close.
		b.newest = false
		counted := idAt(momentOf(ids.New()) - uncountedMillis)
		if len(hours) == 0 || lessID(hours[0].Newest, counted) {
			l.start, b.end = counted, counted
			return l, nil
		}
	} else if len(hours) == 0 {
		return nil, nil
	} else if following := laterID(hours[0].Newest); lessID(following, l.end) {
		l.end = following
	}
	b.into(hours[0], l)
	b.end = l.start
	return l, nil
}

// into makes the look one into the hour, as far back as it may pass over events.
func (b *backward) into(hour activeHour, l *look) {
	within := func(events int64) int64 { return max(1, events*hourMillis/max(1, hour.Uses)) }
	if b.hour != hour.Oldest {
		b.hour, b.millis = hour.Oldest, within(passedByFirstLook)
	} else {
		b.millis = min(b.millis*lookGrowth, within(maxPassedByLook))
	}
	l.passes = hour.Uses * b.millis / hourMillis
	from := l.end
	if lessID(hour.Newest, from) {
		from = hour.Newest
	}
	l.start = earlierID(from, b.millis)
	if lessID(l.start, hour.Oldest) {
		l.start = hour.Oldest
	}
}
