package payments

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/jackc/pgx/v5"

	"purser/payments/sandbox/persist"
	"purser/store/internal/pg"
)

// objectColumnsRead are the columns of a row, in the order of readObject.
const objectColumnsRead = `key, kind, nth, customer, parent, alias, live_of, due, refs, document`

// withRefs completes a statement whose first part is called found: the rows that it
// finds, and all that they refer to. Each key is read by the primary key alone
// (OFFSET 0 keeps the planner from joining), so the cost is that of what is found.
const withRefs = `
	UNION
	SELECT o.key, o.kind, o.nth, o.customer, o.parent, o.alias, o.live_of, o.due, o.refs, o.document
	FROM found f CROSS JOIN LATERAL unnest(f.refs) AS r (key) CROSS JOIN LATERAL (
		SELECT key, kind, nth, customer, parent, alias, live_of, due, refs, document FROM sandbox_objects WHERE app_id = $1 AND key = r.key OFFSET 0
	) o
)
SELECT ` + objectColumnsRead + ` FROM found`

const findRows = `
	WITH RECURSIVE found AS (`

const firstDue = math.MinInt64

var (
	loadObjects = pg.Declare("load sandbox objects", findRows+`
		SELECT o.key, o.kind, o.nth, o.customer, o.parent, o.alias, o.live_of, o.due, o.refs, o.document
		FROM unnest($2::text[]) AS t (key) CROSS JOIN LATERAL (
			SELECT key, kind, nth, customer, parent, alias, live_of, due, refs, document FROM sandbox_objects WHERE app_id = $1 AND key = t.key OFFSET 0
		) o`+withRefs)

	earliestObjects = pg.Declare("earliest sandbox objects", `
		SELECT `+objectColumnsRead+` FROM sandbox_objects
		WHERE app_id = $1 AND kind = $2 AND due IS NOT NULL AND (due, nth) > ($3, $4) ORDER BY due, nth LIMIT $5`)

	readyObjects = pg.Declare("ready sandbox objects", findRows+`(
		SELECT `+objectColumnsRead+` FROM sandbox_objects
		WHERE app_id = $1 AND kind = $2 AND due <= $3 ORDER BY nth LIMIT $4)`+withRefs)

	firstObjectDue = pg.Declare("first due of sandbox objects", `
		SELECT min(due) FROM sandbox_objects WHERE app_id = $1 AND kind = $2 AND due IS NOT NULL AND key <> ALL ($3::text[])`)

	allObjects = pg.Declare("all sandbox objects", `
		SELECT `+objectColumnsRead+` FROM sandbox_objects WHERE app_id = $1`)

	objectByKey = pg.Declare("sandbox object by key", `
		SELECT key FROM sandbox_objects WHERE app_id = $1 AND key = $2
		UNION ALL
		SELECT '' FROM sandbox_worlds WHERE app_id = $1 AND head IS NULL AND state IS NOT NULL`)

	objectByAlias = pg.Declare("sandbox object by alias", `
		SELECT key FROM sandbox_objects WHERE app_id = $1 AND kind = $2 AND alias = $3
		UNION ALL
		SELECT '' FROM sandbox_worlds WHERE app_id = $1 AND head IS NULL AND state IS NOT NULL`)

	upsertObjects = pg.Declare("upsert sandbox objects", `
		INSERT INTO sandbox_objects (app_id, org_id, key, kind, nth, customer, parent, alias, live_of, due, refs, document)
		SELECT s.app_id, s.org_id, t.key, t.kind, t.nth, nullif(t.customer, ''), nullif(t.parent, ''), nullif(t.alias, ''), nullif(t.live_of, ''),
			t.due, string_to_array(t.refs, chr(10)), t.document
		FROM app_state s, unnest($2::text[], $3::text[], $4::bigint[], $5::text[], $6::text[], $7::text[], $8::text[], $9::bigint[], $10::text[], $11::bytea[])
			AS t (key, kind, nth, customer, parent, alias, live_of, due, refs, document)
		WHERE s.app_id = $1
		ON CONFLICT (app_id, key) DO UPDATE SET nth = excluded.nth, customer = excluded.customer, parent = excluded.parent, alias = excluded.alias,
			live_of = excluded.live_of, due = excluded.due, refs = excluded.refs, document = excluded.document`)

	dropObjects = pg.Declare("drop sandbox objects", `
		DELETE FROM sandbox_objects WHERE app_id = $1 AND key = ANY ($2::text[])`)

	deleteObjects = pg.Declare("delete sandbox objects", `
		DELETE FROM sandbox_objects WHERE app_id = $1`)

	pruneObjects = pg.Declare("prune sandbox objects", `
		DELETE FROM sandbox_objects o
		WHERE o.app_id = $1 AND o.kind = $2
			AND greatest((o.due < $3)::int, (o.nth < (
				SELECT l.nth FROM sandbox_objects l WHERE l.app_id = $1 AND l.kind = $2 ORDER BY l.nth DESC OFFSET greatest($4 - 1, 0) LIMIT 1))::int) = 1
			AND NOT EXISTS (
				SELECT FROM sandbox_objects d
				WHERE d.app_id = $1 AND d.kind = $5 AND d.parent = substr(o.key, length($2) + 2))`)
)

// indexColumns name the columns of persist's indexes.
var indexColumns = map[persist.Index]string{persist.ByCustomer: "customer", persist.ByParent: "parent", persist.ByAlias: "alias", persist.ByLiveOf: "live_of"}

// pageKind is one of the orders in which objects are listed.
type pageKind struct {
	index  persist.Index
	oldest bool
}

var objectPages, objectLookups = declarePages(), declareLookups()

func declarePages() map[pageKind]pg.Statement {
	all := map[pageKind]pg.Statement{}
	for _, oldest := range []bool{false, true} {
		beyond, order := "nth < $4", "nth DESC"
		if oldest {
			beyond, order = "nth > $4", "nth"
		}
		all[pageKind{persist.All, oldest}] = pg.Declare("sandbox objects by "+order, findRows+`(
			SELECT `+objectColumnsRead+` FROM sandbox_objects
			WHERE app_id = $1 AND kind = $2 AND $3::text = '' AND `+beyond+` ORDER BY `+order+` LIMIT $5)`+withRefs)
		for _, index := range []persist.Index{persist.ByCustomer, persist.ByParent} {
			column := indexColumns[index]
			all[pageKind{index, oldest}] = pg.Declare("sandbox objects of a "+column+" by "+order, findRows+`(
				SELECT `+objectColumnsRead+` FROM sandbox_objects
				WHERE app_id = $1 AND kind = $2 AND `+column+` = $3 AND `+beyond+` ORDER BY `+order+` LIMIT $5)`+withRefs)
		}
	}
	return all
}

// maxLookup bounds what one look-up finds; more than any parent has of its own.
const maxLookup = 10_000

func declareLookups() map[persist.Index]pg.Statement {
	all := map[persist.Index]pg.Statement{}
	for _, index := range []persist.Index{persist.ByParent, persist.ByAlias, persist.ByLiveOf} {
		column := indexColumns[index]
		all[index] = pg.Declare("sandbox objects with a "+column, findRows+`(
			SELECT o.key, o.kind, o.nth, o.customer, o.parent, o.alias, o.live_of, o.due, o.refs, o.document
			FROM unnest($3::text[]) AS t (value) CROSS JOIN LATERAL (
				SELECT key, kind, nth, customer, parent, alias, live_of, due, refs, document
				FROM sandbox_objects WHERE app_id = $1 AND kind = $2 AND `+column+` = t.value ORDER BY nth LIMIT $4
			) o)`+withRefs)
	}
	return all
}

// objects is persist.Source in one transaction.
type objects struct {
	ctx context.Context
	tx  appTx
}

func (o objects) collect(s pg.Statement, args ...any) ([]persist.Row, error) {
	return pg.Collect(o.ctx, o.tx, s, readObject, args...)
}

// Load is persist.Source's.
func (o objects) Load(keys []string) ([]persist.Row, error) { return o.collect(loadObjects, keys) }

// Lookup is persist.Source's.
func (o objects) Lookup(kind string, index persist.Index, values []string) ([]persist.Row, error) {
	s, known := objectLookups[index]
	if !known {
		return nil, fmt.Errorf("store: sandbox objects are not looked up by %s", indexColumns[index])
	}
	return o.collect(s, kind, values, maxLookup)
}

// Page is persist.Source's.
func (o objects) Page(p persist.Page) ([]persist.Row, error) {
	s, known := objectPages[pageKind{p.Index, p.Oldest}]
	if !known {
		return nil, fmt.Errorf("store: sandbox objects are not listed by %s", indexColumns[p.Index])
	}
	return o.collect(s, p.Kind, p.Value, p.From, p.Limit)
}

// Earliest is persist.Source's.
func (o objects) Earliest(kind string, afterDue, afterNth int64, limit int) ([]persist.Row, error) {
	return o.collect(earliestObjects, kind, afterDue, afterNth, limit)
}

// Ready is persist.Source's.
func (o objects) Ready(kind string, due int64, limit int) ([]persist.Row, error) {
	return o.collect(readyObjects, kind, due, limit)
}

// FirstDue is persist.Source's.
func (o objects) FirstDue(kind string, except []string) (due int64, found bool, err error) {
	first, err := pg.Collect(o.ctx, o.tx, firstObjectDue, pgx.RowTo[*int64], kind, except)
	if err != nil || len(first) == 0 || first[0] == nil {
		return 0, false, err
	}
	return *first[0], true, nil
}

// Everything is persist.Source's.
func (o objects) Everything() ([]persist.Row, error) { return o.collect(allObjects) }

func readObject(row pgx.CollectableRow) (r persist.Row, err error) {
	var customer, parent, alias, liveOf *string
	var due *int64
	err = row.Scan(&r.Key, &r.Kind, &r.Nth, &customer, &parent, &alias, &liveOf, &due, &r.Refs, &r.Document)
	for into, from := range map[*string]*string{&r.Customer: customer, &r.Parent: parent, &r.Alias: alias, &r.LiveOf: liveOf} {
		if from != nil {
			*into = *from
		}
	}
	if due != nil {
		r.Timed, r.Due = true, *due
	}
	return r, err
}

func readObjects(into *[]persist.Row) func(pgx.Rows) error {
	return func(rows pgx.Rows) (err error) {
		*into, err = pgx.CollectRows(rows, readObject)
		return err
	}
}

// objectColumns turns rows into the arrays that the upsert takes.
func objectColumns(rows []persist.Row) []any {
	n := len(rows)
	key, kind, nth := make([]string, n), make([]string, n), make([]int64, n)
	customer, parent, alias, liveOf := make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	due, refs, document := make([]*int64, n), make([]string, n), make([][]byte, n)
	for i, r := range rows {
		key[i], kind[i], nth[i] = r.Key, r.Kind, r.Nth
		customer[i], parent[i], alias[i], liveOf[i] = r.Customer, r.Parent, r.Alias, r.LiveOf
		refs[i], document[i] = strings.Join(r.Refs, "\n"), r.Document
		if r.Timed {
			due[i] = &r.Due
		}
	}
	return []any{key, kind, nth, customer, parent, alias, liveOf, due, refs, document}
}
