package packing

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"purser/store/internal/pg"
)

const (
	// transactionIndex is the BRIN index that finds events by their transactions.
	transactionIndex = "usage_events_by_transaction"
	// rebuildPoll is how often a process asks whether another one has finished a rebuild.
	rebuildPoll = time.Second
)

// The note of the last rebuild is the comment of the index: a backup has both, and a new index
// has none. An interrupted REINDEX CONCURRENTLY leaves an invalid index.
const readIndex = `
	SELECT format('Rebuilt after %s events were packed.', p.events), p.events > 0,
		coalesce(obj_description(x.indexrelid, 'pg_class'), ''), x.indisvalid,
		ARRAY(SELECT c.relname::text FROM pg_index l JOIN pg_class c ON c.oid = l.indexrelid
			WHERE l.indrelid = x.indrelid AND NOT l.indisvalid AND c.relname ~ '^` + transactionIndex + `_cc(new|old)[0-9]*$' ORDER BY 1)
	FROM pg_index x, (SELECT coalesce(sum(r.events), 0) AS events FROM packing_results r) p
	WHERE x.indexrelid = to_regclass('public.` + transactionIndex + `')`

// indexState is what the catalog says about the index of transactions.
type indexState struct {
	Note   string // of a rebuild now
	Packed bool   // events were packed
	Last   string // the note of the last rebuild
	Valid  bool
	Left   []string // indexes of interrupted rebuilds
}

func (s indexState) needsRebuild() bool {
	return s.Packed && s.Last != s.Note || !s.Valid || len(s.Left) > 0
}

// RebuildIndex rebuilds the index of transactions if events were packed since the last time, or
// a rebuild was interrupted. Ranges of a BRIN index only ever grow: once events of today lie in
// the pages of packed ones, a lookup by a transaction would read most of the table. The table is
// vacuumed first. Usage continues meanwhile, and older transactions are waited for.
func (p *Packer) RebuildIndex(ctx context.Context) error {
	if err := p.rebuild(ctx); err != nil {
		return fmt.Errorf("store: packing: rebuilding the index %s: %w: run it again", transactionIndex, err)
	}
	return nil
}

func (p *Packer) rebuild(ctx context.Context) (err error) {
	if s, err := p.readIndex(ctx); err != nil || !s.needsRebuild() {
		return err
	}
	release, err := p.awaitRebuilds(ctx)
	if err != nil {
		return err
	}
	defer release()
	s, err := p.readIndex(ctx)
	if err != nil || !s.needsRebuild() {
		return err
	}
	if p.Rebuilds != nil {
		p.Rebuilds()
	}
	// As slowly as autovacuum, because usage continues.
	if _, err := p.conn.Exec(ctx, `SET lock_timeout = 0; SET statement_timeout = 0; SET vacuum_cost_delay = '2ms'`); err != nil {
		return err
	}
	if _, err := p.conn.Exec(ctx, `VACUUM usage_events`); err != nil {
		return err
	}
	// A process that waits for a migration to end, which waits for us, is a deadlock.
	err = pg.RetryLocked(ctx, pg.SchemaPatience, func() error {
		s, err := p.readIndex(ctx)
		if err != nil {
			return err
		}
		for _, name := range s.Left {
			if _, err := p.conn.Exec(ctx, `DROP INDEX CONCURRENTLY IF EXISTS public.`+pgx.Identifier{name}.Sanitize()); err != nil {
				return err
			}
		}
		_, err = p.conn.Exec(ctx, `REINDEX INDEX CONCURRENTLY public.`+transactionIndex)
		return err
	})
	if err != nil {
		return err
	}
	if _, err := p.conn.Exec(ctx, `COMMENT ON INDEX public.`+transactionIndex+` IS '`+s.Note+`'`); err != nil {
		return err
	}
	_, err = p.conn.Exec(ctx, setLimits)
	return err
}

// readIndex returns a state without need for a rebuild when there is no such index.
func (p *Packer) readIndex(ctx context.Context) (indexState, error) {
	rows, _ := p.conn.Query(ctx, readIndex) // CollectRows returns its error
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[indexState])
	if err != nil || len(found) == 0 {
		return indexState{Valid: true}, err
	}
	return found[0], nil
}

// awaitRebuilds waits for the rebuild of another process, whose index would count as left by an
// interruption. It asks again and again: a statement that waits has a snapshot, for whose end
// the rebuild would wait.
func (p *Packer) awaitRebuilds(ctx context.Context) (release func(), err error) {
	for {
		release, free, err := p.tryLock(ctx, "purser pack: rebuild of "+transactionIndex)
		if err != nil || free {
			return release, err
		}
		if err := pause(ctx, rebuildPoll); err != nil {
			return nil, err
		}
	}
}
