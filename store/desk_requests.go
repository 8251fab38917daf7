package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"purser/fault"
	"purser/ids"
	"purser/keys"
)

// ringSize is how many requests of an application are kept.
const ringSize = 2_000

// Request is what is kept of a request to the API: its route and not its path,
// which may name people, and nothing of what it carried.
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

	// All of the ring is read: it is small, and has no order of its own.
	listRequests = declare("list requests", `
		SELECT r.id, r.at, r.method, r.route, r.status, r.error, r.took_us, r.key_id, coalesce(k.name, ''), coalesce(k.live, false), coalesce(k.last_four, '')
		FROM recent_requests r LEFT JOIN api_keys k ON k.app_id = $1 AND k.id = r.key_id
		WHERE r.app_id = $1 AND r.id < $2 AND (NOT $3 OR r.status >= 400)
		ORDER BY r.id DESC LIMIT $4`)
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
		var code *string
		if r.Code != "" {
			code = (*string)(&r.Code)
		}
		slot := int32((written - int64(len(list)) + int64(i)) % ringSize)
		rows.add(slot, r.ID, r.At, r.Method, r.Route, int32(r.Status), code, r.TookMicros, r.KeyID)
	}
	return rows.exec(ctx, tx, putRequests)
}

// Requests lists the application's recent requests, newest first, or only those
// that failed, and reports whether there are more.
func (a App) Requests(ctx context.Context, failed bool, p Page) (list []Request, more bool, err error) {
	if err := a.catchUp(ctx); err != nil {
		return nil, false, err
	}
	err = a.transact(ctx, func(ctx context.Context, tx appTx) error {
		list, err = collect(ctx, tx, listRequests, readRequest, p.before(), failed, p.oneMore())
		return err
	})
	list, more = cut(list, p.Limit)
	return list, more, err
}

func readRequest(row pgx.CollectableRow) (r Request, err error) {
	var code *string
	var live bool
	var lastFour string
	err = row.Scan(&r.ID, &r.At, &r.Method, &r.Route, &r.Status, &code, &r.TookMicros, &r.KeyID, &r.KeyName, &live, &lastFour)
	r.Code = fault.Code(orZero(code))
	if lastFour != "" {
		r.KeyMasked = keys.APIKey{Live: live, Last4: lastFour}.Masked()
	}
	return r, err
}
