package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"purser/fault"
	"purser/ids"
	"purser/keys"
)

// ringSize is how many requests of an application are kept.
const ringSize = 2_000

const (
	// DefaultKeepFailures is how long failed requests are kept when nothing else is set.
	DefaultKeepFailures = 30 * 24 * time.Hour
	// failuresPerMinute is how many failures of an application one node keeps in a minute.
	// All are counted. They bound the table at 860,000 rows in 30 days, as long as there
	// are few codes: failuresPerCode of each are kept in any case.
	failuresPerMinute = 20
	failuresPerCode   = 2
	// heldFailures is how many of an application a node holds while the database does not
	// take them: an hour's.
	heldFailures = 60 * failuresPerMinute
	// prunedFailures is how many that are too old go when new ones are written.
	prunedFailures = 500
)

// Request is what is kept of a request to the API: its route and not its path. Of what
// it carried, a failure keeps the identity and the feature.
type Request struct {
	ID         ids.ID
	At         int64
	Method     string
	Route      string
	Status     int
	Code       fault.Code // why it failed; empty when it did not
	TookMicros int64
	KeyID      ids.ID
	KeyName    string // when it is read
	KeyMasked  string

	// Of a failure only.
	Identity string
	Feature  string
	// Authenticated requests alone are kept for long: a stranger cannot add to them.
	Authenticated bool
}

// Failed reports whether the request was answered with an error.
func (r Request) Failed() bool { return r.Status >= 400 }

var (
	turnRing = declare("turn request ring", `
		INSERT INTO request_rings (app_id, org_id, written)
		SELECT s.app_id, s.org_id, $2 FROM app_state s WHERE s.app_id = $1
		ON CONFLICT (app_id) DO UPDATE SET written = request_rings.written + excluded.written
		RETURNING written`)

	putRequests = declare("put requests", `
		INSERT INTO recent_requests (app_id, slot, org_id, id, at, method, route, status, error, took_us, key_id)
		SELECT s.app_id, t.slot, s.org_id, t.id, t.at, t.method, t.route, t.status, t.error, t.took, t.key_id
		FROM app_state s CROSS JOIN unnest($2::integer[], $3::uuid[], $4::bigint[], $5::text[], $6::text[], $7::integer[],
			$8::text[], $9::bigint[], $10::uuid[]) AS t (slot, id, at, method, route, status, error, took, key_id)
		WHERE s.app_id = $1
		ON CONFLICT (app_id, slot) DO UPDATE SET
			id = excluded.id, at = excluded.at, method = excluded.method, route = excluded.route, status = excluded.status,
			error = excluded.error, took_us = excluded.took_us, key_id = excluded.key_id`)

	putFailures = declare("put request failures", `
		INSERT INTO request_failures (app_id, id, org_id, at, method, route, status, error, took_us, key_id, identity, feature)
		SELECT s.app_id, t.id, s.org_id, t.at, t.method, t.route, t.status, t.error, t.took, t.key_id, t.identity, t.feature
		FROM app_state s CROSS JOIN unnest($2::uuid[], $3::bigint[], $4::text[], $5::text[], $6::integer[],
			$7::text[], $8::bigint[], $9::uuid[], $10::text[], $11::text[]) AS t (id, at, method, route, status, error, took, key_id, identity, feature)
		WHERE s.app_id = $1
		ON CONFLICT (app_id, id) DO NOTHING`)

	pruneFailures = declare("prune request failures", `
		DELETE FROM request_failures WHERE app_id = $1 AND id IN (
			SELECT f.id FROM request_failures f WHERE f.app_id = $1 AND f.id < $2 ORDER BY f.id LIMIT $3)`)

	listFailures = declare("list request failures", `
		SELECT r.id, r.at, r.method, r.route, r.status, r.error, r.took_us, r.key_id, coalesce(k.name, ''), coalesce(k.live, false), coalesce(k.last_four, ''), r.identity, r.feature
		FROM request_failures r LEFT JOIN api_keys k ON k.app_id = $1 AND k.id = r.key_id
		WHERE r.app_id = $1 AND r.id < $2 AND r.id >= $3
		ORDER BY r.id DESC LIMIT $4`)

	// All of the ring is read: it is small, and has no order of its own.
	listRequests = declare("list requests", `
		SELECT r.id, r.at, r.method, r.route, r.status, r.error, r.took_us, r.key_id, coalesce(k.name, ''), coalesce(k.live, false), coalesce(k.last_four, ''), '', ''
		FROM recent_requests r LEFT JOIN api_keys k ON k.app_id = $1 AND k.id = r.key_id
		WHERE r.app_id = $1 AND r.id < $2
		ORDER BY r.id DESC LIMIT $3`)
)

// addRequests writes requests over the oldest of the ring.
func (tx appTx) addRequests(ctx context.Context, list []Request) error {
	if len(list) == 0 {
		return nil
	}
	written, err := find(ctx, tx, turnRing, pgx.RowTo[int64], errNoAppState, len(list))
	if err != nil {
		return err
	}
	rows := newColumns(9)
	for i, r := range list {
		slot := int32((written - int64(len(list)) + int64(i)) % ringSize)
		rows.add(slot, r.ID, r.At, r.Method, r.Route, int32(r.Status), r.code(), r.TookMicros, r.KeyID)
	}
	return rows.exec(ctx, tx, putRequests)
}

// code is the error as it is stored: NULL for none.
func (r Request) code() *string {
	if r.Code == "" {
		return nil
	}
	return (*string)(&r.Code)
}

// addFailures keeps failed requests, and removes some that are too old.
func (tx appTx) addFailures(ctx context.Context, list []Request, oldest ids.ID) error {
	if len(list) == 0 {
		return nil
	}
	rows := newColumns(10)
	for _, r := range list {
		rows.add(r.ID, r.At, r.Method, r.Route, int32(r.Status), r.code(), r.TookMicros, r.KeyID, r.Identity, r.Feature)
	}
	args := make([]any, len(rows))
	for i, column := range rows {
		args[i] = column
	}
	if _, err := tx.execAny(ctx, putFailures, args...); err != nil {
		return err
	}
	_, err := tx.execAny(ctx, pruneFailures, oldest, prunedFailures)
	return err
}

// oldestFailure is the lowest id of a failure that is not too old.
func (s *Store) oldestFailure() ids.ID {
	return idAt(s.clock.Now() - s.keepFailures.Milliseconds())
}

// KeepsFailures is how long failed requests are kept.
func (s *Store) KeepsFailures() time.Duration { return s.keepFailures }

// Requests lists the application's recent requests, newest first, or all that failed in
// the time that failures are kept, and reports whether there are more.
func (a App) Requests(ctx context.Context, failed bool, p Page) (list []Request, more bool, err error) {
	if err := a.catchUp(ctx); err != nil {
		return nil, false, err
	}
	err = a.transact(ctx, func(ctx context.Context, tx appTx) error {
		if failed {
			list, err = collect(ctx, tx, listFailures, readRequest, p.before(), a.store.oldestFailure(), p.oneMore())
		} else {
			list, err = collect(ctx, tx, listRequests, readRequest, p.before(), p.oneMore())
		}
		return err
	})
	list, more = cut(list, p.Limit)
	return list, more, err
}

func readRequest(row pgx.CollectableRow) (r Request, err error) {
	var code *string
	var live bool
	var lastFour string
	err = row.Scan(&r.ID, &r.At, &r.Method, &r.Route, &r.Status, &code, &r.TookMicros, &r.KeyID, &r.KeyName, &live, &lastFour, &r.Identity, &r.Feature)
	r.Code = fault.Code(orZero(code))
	if lastFour != "" {
		r.KeyMasked = keys.APIKey{Live: live, Last4: lastFour}.Masked()
	}
	return r, err
}
