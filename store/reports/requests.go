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
	// database is down.
	heldFailures = 60 * FailuresPerMinute
	// prunedFailures is how many expired failures are deleted with each write.
	prunedFailures = 500
)

// failuresScanned is how many failures a filtered page reads before it returns a partial
// page.
const failuresScanned = 5_000

// Request is the stored part of an API request: its route, not its path, and whom and
// what it was about.
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

	Identity string // empty when the request named none
	Feature  string
	Message  string // of a failure
	// Only authenticated failures are stored for long, so that clients without a key
	// cannot fill the table.
	Authenticated bool

	recordedAt int64 // on this node; not stored
}

// Failed reports whether the response was an error.
func (r Request) Failed() bool { return r.Status >= 400 }

const (
	storedRequestColumns = `id, at, method, route, status, error, took_us, key_id, identity, feature, message`

	requestJoins = `
		LEFT JOIN LATERAL (SELECT name, live, last_four FROM api_keys WHERE app_id = $1 AND id = r.key_id LIMIT 1) k ON true`

	// The filters see a bounded number of rows.
	filteredRequests = `
		WHERE ($5::uuid IS NULL OR key_id = $5) AND status >= $6 AND status < $7 AND ($8::text IS NULL OR error = $8)
			AND ($9::text IS NULL OR method || ' ' || route = $9)
		ORDER BY id DESC LIMIT $10`
)

var (
	requestColumns = pg.Prefixed("r", storedRequestColumns) + `, coalesce(k.name, ''), coalesce(k.live, false), coalesce(k.last_four, '')`

	advanceRing = pg.Declare("turn request ring", `
		INSERT INTO request_rings (app_id, org_id, written)
		SELECT s.app_id, s.org_id, $2 FROM app_state s WHERE s.app_id = $1
		ON CONFLICT (app_id) DO UPDATE SET written = request_rings.written + excluded.written
		RETURNING written`)

	putRequests = pg.Declare("put requests", `
		INSERT INTO recent_requests (app_id, slot, org_id, id, at, method, route, status, error, took_us, key_id, identity, feature, message)
		SELECT s.app_id, t.slot, s.org_id, t.id, t.at, t.method, t.route, t.status, t.error, t.took, t.key_id, t.identity, t.feature, t.message
		FROM app_state s CROSS JOIN unnest($2::integer[], $3::uuid[], $4::bigint[], $5::text[], $6::text[], $7::integer[],
			$8::text[], $9::bigint[], $10::uuid[], $11::text[], $12::text[], $13::text[])
			AS t (slot, id, at, method, route, status, error, took, key_id, identity, feature, message)
		WHERE s.app_id = $1
		ON CONFLICT (app_id, slot) DO UPDATE SET
			id = excluded.id, at = excluded.at, method = excluded.method, route = excluded.route, status = excluded.status,
			error = excluded.error, took_us = excluded.took_us, key_id = excluded.key_id,
			identity = excluded.identity, feature = excluded.feature, message = excluded.message`)

	putFailures = pg.Declare("put request failures", `
		INSERT INTO request_failures (app_id, id, org_id, at, method, route, status, error, took_us, key_id, identity, feature, message)
		SELECT s.app_id, t.id, s.org_id, t.at, t.method, t.route, t.status, t.error, t.took, t.key_id, t.identity, t.feature, t.message
		FROM app_state s CROSS JOIN unnest($2::uuid[], $3::bigint[], $4::text[], $5::text[], $6::integer[],
			$7::text[], $8::bigint[], $9::uuid[], $10::text[], $11::text[], $12::text[])
			AS t (id, at, method, route, status, error, took, key_id, identity, feature, message)
		WHERE s.app_id = $1
		ON CONFLICT (app_id, id) DO NOTHING`)

	PruneFailures = pg.Declare("prune request failures", `
		DELETE FROM request_failures WHERE app_id = $1 AND id IN (
			SELECT f.id FROM request_failures f WHERE f.app_id = $1 AND f.id < $2 ORDER BY f.id LIMIT $3)`)

	listFailures           = failuresWhere("list request failures", "")
	listFailuresByIdentity = failuresWhere("filter request failures of an identity", "identity = $11 AND ")

	// Where a scan of this many failures ends.
	failureScanEnd = pg.Declare("find end of failures scan", `
		SELECT id FROM request_failures WHERE app_id = $1 AND id < $2 AND id >= $3 ORDER BY id DESC OFFSET $4 LIMIT 1`)

	// The whole ring is read: it is small and unordered. Its identity is filtered here.
	listRequests   = requestsWhere("list requests", "")
	listRequestsOf = requestsWhere("list requests of an identity", "identity = $11 AND ")

	selectFailure = pg.Declare("select request failure", `
		SELECT `+requestColumns+` FROM (
			SELECT `+storedRequestColumns+` FROM request_failures WHERE app_id = $1 AND id = $2
		) r`+requestJoins)

	selectRequest = pg.Declare("select request", `
		SELECT `+requestColumns+` FROM (
			SELECT `+storedRequestColumns+` FROM recent_requests WHERE app_id = $1 AND id = $2 LIMIT 1
		) r`+requestJoins)
)

func failuresWhere(name, condition string) pg.Statement {
	return pg.Declare(name, `
		SELECT `+requestColumns+` FROM (
			SELECT `+storedRequestColumns+` FROM (
				SELECT `+storedRequestColumns+` FROM request_failures
				WHERE app_id = $1 AND `+condition+`id < $2 AND id >= $3 ORDER BY id DESC LIMIT $4
			) scanned`+filteredRequests+`
		) r`+requestJoins+` ORDER BY r.id DESC`)
}

func requestsWhere(name, condition string) pg.Statement {
	return pg.Declare(name, `
		SELECT `+requestColumns+` FROM (
			SELECT `+storedRequestColumns+` FROM (
				SELECT `+storedRequestColumns+` FROM recent_requests
				WHERE app_id = $1 AND `+condition+`id < $2 AND id >= $3 LIMIT $4
			) scanned`+filteredRequests+`
		) r`+requestJoins+` ORDER BY r.id DESC`)
}

// writeRequests overwrites the oldest requests of the ring.
func (tx appTx) writeRequests(ctx context.Context, list []Request) error {
	if len(list) == 0 {
		return nil
	}
	written, err := pg.Find(ctx, tx, advanceRing, pgx.RowTo[int64], pg.ErrNoAppState, len(list))
	if err != nil {
		return err
	}
	rows := newColumns(12)
	for i, r := range list {
		slot := int32((written - int64(len(list)) + int64(i)) % RingSize)
		rows.add(slot, r.ID, r.At, r.Method, r.Route, int32(r.Status), pg.OrNull(string(r.Code)), r.TookMicros, r.KeyID, pg.OrNull(r.Identity), pg.OrNull(r.Feature), pg.OrNull(r.Message))
	}
	return rows.exec(ctx, tx, putRequests)
}

// writeFailures stores failed requests and deletes some expired ones.
func (tx appTx) writeFailures(ctx context.Context, list []Request, oldest ids.ID) error {
	if len(list) == 0 {
		return nil
	}
	rows := newColumns(11)
	for _, r := range list {
		rows.add(r.ID, r.At, r.Method, r.Route, int32(r.Status), pg.OrNull(string(r.Code)), r.TookMicros, r.KeyID, r.Identity, r.Feature, pg.OrNull(r.Message))
	}
	if _, err := tx.ExecAny(ctx, putFailures, rows.args()...); err != nil {
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

// RequestQuery filters requests, newest first.
type RequestQuery struct {
	Failed   bool   // all failures within their retention, instead of recent requests
	Identity string // all when empty, as all below
	KeyID    ids.ID
	Class    int // hundreds of the status
	Code     fault.Code
	Route    string // with the method, such as "POST /v1/events"
	pg.Page
}

// Requests lists the application's recent requests, newest first, or all failures within
// their retention. It returns the next page, or nil at the end. A filter that skips very
// many failures returns a partial page.
func (a App) Requests(ctx context.Context, q RequestQuery) ([]Request, *pg.Page, error) {
	if err := a.flushStats(ctx); err != nil {
		return nil, nil, err
	}
	return pg.ReturnBoth(ctx, a.snapshot, func(ctx context.Context, tx appTx) ([]Request, *pg.Page, error) {
		return tx.requests(ctx, q, a.node.OldestFailure())
	})
}

func (tx appTx) requests(ctx context.Context, q RequestQuery, oldest ids.ID) (list []Request, next *pg.Page, err error) {
	statement, of, scanned := listRequests, listRequestsOf, RingSize
	if q.Failed {
		statement, of, scanned = listFailures, listFailuresByIdentity, failuresScanned
	} else {
		oldest = ids.ID{}
	}
	from, to := 0, 1_000
	if q.Class != 0 {
		from, to = 100*q.Class, 100*q.Class+100
	}
	args := []any{q.Start(), oldest, scanned, pg.OrNull(q.KeyID), from, to, pg.OrNull(string(q.Code)), pg.OrNull(q.Route), q.OneMore()}
	if q.Identity != "" {
		statement, args = of, append(args, q.Identity)
	}
	if list, err = pg.Collect(ctx, tx, statement, readRequest, args...); err != nil {
		return nil, nil, err
	}
	list, more := pg.Cut(list, q.Limit)
	switch {
	case more:
		return list, &pg.Page{Before: list[len(list)-1].ID, Limit: q.Limit}, nil
	case !q.Failed || q.Identity != "": // the ring is read whole, and an identity has few failures
		return list, nil, nil
	}
	end, err := pg.Collect(ctx, tx, failureScanEnd, pgx.RowTo[ids.ID], q.Start(), oldest, scanned-1)
	if len(end) > 0 {
		next = &pg.Page{Before: end[0], Limit: q.Limit}
	}
	return list, next, err
}

// Request is one request: a failure within its retention, or a recent one.
func (a App) Request(ctx context.Context, id ids.ID) (r Request, err error) {
	if err := a.flushStats(ctx); err != nil {
		return r, err
	}
	return pg.Return(ctx, a.snapshot, func(ctx context.Context, tx appTx) (Request, error) {
		missing := fault.New(fault.PathNotFound)
		r, err := pg.Find(ctx, tx, selectFailure, readRequest, missing, id)
		if fault.Is(err, fault.PathNotFound) {
			return pg.Find(ctx, tx, selectRequest, readRequest, missing, id)
		}
		return r, err
	})
}

func readRequest(row pgx.CollectableRow) (r Request, err error) {
	var code, identity, feature, message *string
	var live bool
	var lastFour string
	err = row.Scan(&r.ID, &r.At, &r.Method, &r.Route, &r.Status, &code, &r.TookMicros, &r.KeyID, &identity, &feature, &message, &r.KeyName, &live, &lastFour)
	r.Code, r.Identity, r.Feature, r.Message = fault.Code(pg.OrZero(code)), pg.OrZero(identity), pg.OrZero(feature), pg.OrZero(message)
	if lastFour != "" {
		r.KeyMasked = keys.APIKey{Live: live, Last4: lastFour}.Masked()
	}
	return r, err
}
