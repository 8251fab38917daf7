package reports

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"purser/fault"
	"purser/ids"
	"purser/keys"
	"purser/store/internal/pg"
)

// RingSize is how many recent requests of an application are kept.
const RingSize = 2_000

const (
	// DefaultKeepFailures is the default retention of failed requests.
	DefaultKeepFailures = 30 * 24 * time.Hour
	// FailuresPerMinute is how many failures of an application one node stores per
	// minute. All are counted. This bounds the table at 860,000 rows in 30 days, as
	// long as there are few codes: failuresPerCode of each are stored in any case.
	FailuresPerMinute = 20
	failuresPerCode   = 2
	// heldFailures is how many failures of an application a node buffers while the
	// database is down: an hour's.
	heldFailures = 60 * FailuresPerMinute
	// prunedFailures is how many expired failures are deleted with each write.
	prunedFailures = 500
)

// Request is the stored part of an API request: its route, not its path. A failure also
// keeps the identity and the feature.
type Request struct {
	ID         ids.ID
	At         int64
	Method     string
	Route      string
	Status     int
	Code       fault.Code // error code; empty for a success
	TookMicros int64
	KeyID      ids.ID
	KeyName    string // set by reads
	KeyMasked  string

	// Of a failure only.
	Identity string
	Feature  string
	// Only authenticated failures are stored for long, so that clients without a key
	// cannot fill the table.
	Authenticated bool
}

// Failed reports whether the response was an error.
func (r Request) Failed() bool { return r.Status >= 400 }

var (
	advanceRing = pg.Declare("turn request ring", `
		INSERT INTO request_rings (app_id, org_id, written)
		SELECT s.app_id, s.org_id, $2 FROM app_state s WHERE s.app_id = $1
		ON CONFLICT (app_id) DO UPDATE SET written = request_rings.written + excluded.written
		RETURNING written`)

	putRequests = pg.Declare("put requests", `
		INSERT INTO recent_requests (app_id, slot, org_id, id, at, method, route, status, error, took_us, key_id)
		SELECT s.app_id, t.slot, s.org_id, t.id, t.at, t.method, t.route, t.status, t.error, t.took, t.key_id
		FROM app_state s CROSS JOIN unnest($2::integer[], $3::uuid[], $4::bigint[], $5::text[], $6::text[], $7::integer[],
			$8::text[], $9::bigint[], $10::uuid[]) AS t (slot, id, at, method, route, status, error, took, key_id)
		WHERE s.app_id = $1
		ON CONFLICT (app_id, slot) DO UPDATE SET
			id = excluded.id, at = excluded.at, method = excluded.method, route = excluded.route, status = excluded.status,
			error = excluded.error, took_us = excluded.took_us, key_id = excluded.key_id`)

	putFailures = pg.Declare("put request failures", `
		INSERT INTO request_failures (app_id, id, org_id, at, method, route, status, error, took_us, key_id, identity, feature)
		SELECT s.app_id, t.id, s.org_id, t.at, t.method, t.route, t.status, t.error, t.took, t.key_id, t.identity, t.feature
		FROM app_state s CROSS JOIN unnest($2::uuid[], $3::bigint[], $4::text[], $5::text[], $6::integer[],
			$7::text[], $8::bigint[], $9::uuid[], $10::text[], $11::text[]) AS t (id, at, method, route, status, error, took, key_id, identity, feature)
		WHERE s.app_id = $1
		ON CONFLICT (app_id, id) DO NOTHING`)

	PruneFailures = pg.Declare("prune request failures", `
		DELETE FROM request_failures WHERE app_id = $1 AND id IN (
			SELECT f.id FROM request_failures f WHERE f.app_id = $1 AND f.id < $2 ORDER BY f.id LIMIT $3)`)

	listFailures = pg.Declare("list request failures", `
		SELECT r.id, r.at, r.method, r.route, r.status, r.error, r.took_us, r.key_id, coalesce(k.name, ''), coalesce(k.live, false), coalesce(k.last_four, ''), r.identity, r.feature
		FROM request_failures r LEFT JOIN api_keys k ON k.app_id = $1 AND k.id = r.key_id
		WHERE r.app_id = $1 AND r.id < $2 AND r.id >= $3
		ORDER BY r.id DESC LIMIT $4`)

	// The whole ring is read: it is small and unordered.
	listRequests = pg.Declare("list requests", `
		SELECT r.id, r.at, r.method, r.route, r.status, r.error, r.took_us, r.key_id, coalesce(k.name, ''), coalesce(k.live, false), coalesce(k.last_four, ''), '', ''
		FROM recent_requests r LEFT JOIN api_keys k ON k.app_id = $1 AND k.id = r.key_id
		WHERE r.app_id = $1 AND r.id < $2
		ORDER BY r.id DESC LIMIT $3`)
)

// writeRequests overwrites the oldest requests of the ring.
func (tx appTx) writeRequests(ctx context.Context, list []Request) error {
	if len(list) == 0 {
		return nil
	}
	written, err := pg.Find(ctx, tx, advanceRing, pgx.RowTo[int64], pg.ErrNoAppState, len(list))
	if err != nil {
		return err
	}
	rows := newColumns(9)
	for i, r := range list {
		slot := int32((written - int64(len(list)) + int64(i)) % RingSize)
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

// writeFailures stores failed requests and deletes some expired ones.
func (tx appTx) writeFailures(ctx context.Context, list []Request, oldest ids.ID) error {
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
	if _, err := tx.ExecAny(ctx, putFailures, args...); err != nil {
		return err
	}
	_, err := tx.ExecAny(ctx, PruneFailures, oldest, prunedFailures)
	return err
}

// OldestFailure is the lowest id within the retention of failures.
func (s *Counters) OldestFailure() ids.ID {
	return pg.IDAt(s.db.Clock.Now() - s.keepFailures.Milliseconds())
}

// KeepsFailures is the retention of failed requests.
func (s *Counters) KeepsFailures() time.Duration { return s.keepFailures }

// Requests lists the application's recent requests, newest first, or all failures
// within their retention, and reports whether there are more.
func (a App) Requests(ctx context.Context, failed bool, p pg.Page) (list []Request, more bool, err error) {
	if err := a.flushStats(ctx); err != nil {
		return nil, false, err
	}
	err = a.transact(ctx, func(ctx context.Context, tx appTx) error {
		if failed {
			list, err = pg.Collect(ctx, tx, listFailures, readRequest, p.Start(), a.node.OldestFailure(), p.OneMore())
		} else {
			list, err = pg.Collect(ctx, tx, listRequests, readRequest, p.Start(), p.OneMore())
		}
		return err
	})
	list, more = pg.Cut(list, p.Limit)
	return list, more, err
}

func readRequest(row pgx.CollectableRow) (r Request, err error) {
	var code *string
	var live bool
	var lastFour string
	err = row.Scan(&r.ID, &r.At, &r.Method, &r.Route, &r.Status, &code, &r.TookMicros, &r.KeyID, &r.KeyName, &live, &lastFour, &r.Identity, &r.Feature)
	r.Code = fault.Code(pg.OrZero(code))
	if lastFour != "" {
		r.KeyMasked = keys.APIKey{Live: live, Last4: lastFour}.Masked()
	}
	return r, err
}
