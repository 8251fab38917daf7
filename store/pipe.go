package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"purser/ids"
	"purser/store/internal/ledger"
	"purser/store/internal/pg"
)

// pipe sends several statements in one round trip and reads their results in order.
type pipe struct {
	pipeline *pgconn.Pipeline
	steps    []step
	app      ids.ID // the application that the row-level policies are set to
	readOnly bool   // runs in a read-only transaction of its own
}

type step struct {
	name string
	read func(*row) // called for each row; nil to ignore them
	want int64      // expected affected rows; anyCount to ignore them
}

const anyCount = -1

var binaryFormat = []int16{1}

func newPipe(ctx context.Context, conn *pgx.Conn) *pipe {
	return &pipe{pipeline: conn.PgConn().StartPipeline(ctx)}
}

// newReadPipe makes a pipe that runs in a read-only transaction of its own.
func newReadPipe(ctx context.Context, conn *pgx.Conn) *pipe {
	p := newPipe(ctx, conn)
	p.readOnly = true
	return p
}

var txCommands = []pg.TxCommand{pg.BeginTx, pg.BeginReadOnly, pg.BeginSnapshot, pg.CommitTx}

func (p *pipe) sendCommand(f pg.TxCommand) {
	p.pipeline.SendQueryPrepared(f.Name, nil, nil, nil)
	p.steps = append(p.steps, step{name: f.SQL, want: anyCount})
}

// text sends a statement without parameters that is not prepared.
func (p *pipe) text(sql string) {
	p.pipeline.SendQueryParams(sql, nil, nil, nil, nil)
	p.steps = append(p.steps, step{name: sql, want: anyCount})
}

// send sends a prepared statement with binary parameters, the application's id first.
// The row-level policies are set to that one application: a list of all applications of
// a batch would be read again for each row.
func (p *pipe) send(s pg.Statement, read func(*row), params ...[]byte) {
	if p.readOnly && len(p.steps) == 0 {
		p.sendCommand(pg.BeginReadOnly)
	}
	if app := ids.ID(params[0]); app != p.app {
		p.text(pg.SetApplication(app))
		p.app = app
	}
	p.pipeline.SendQueryPrepared(s.PreparedName(), params, binaryFormat, binaryFormat)
	p.steps = append(p.steps, step{name: s.Name, read: read, want: anyCount})
}

// sendText sends a statement that is not prepared on the connection.
func (p *pipe) sendText(s pg.Statement, read func(*row), params ...[]byte) {
	p.pipeline.SendQueryParams(s.SQL, params, nil, binaryFormat, binaryFormat)
	p.steps = append(p.steps, step{name: s.Name, read: read, want: anyCount})
}

// sendCounted sends a statement that must affect exactly want rows.
func (p *pipe) sendCounted(s pg.Statement, want int64, params ...[]byte) {
	p.send(s, nil, params...)
	p.steps[len(p.steps)-1].want = want
}

// sendRows sends columns after the parameters that all rows share: one row by the
// scalar statement, several by the array statement, none not at all. A caller without a
// scalar statement passes the array statement twice.
func (p *pipe) sendRows(one, many pg.Statement, columns []column, shared ...[]byte) {
	switch rows := columns[0].count; {
	case rows == 0:
	case rows == 1 && one != many:
		for i := range columns {
			shared = append(shared, columns[i].single())
		}
		p.sendCounted(one, 1, shared...)
	default:
		p.sendCounted(many, int64(rows), append(shared, encodeAll(columns)...)...)
	}
}

// run makes the round trip, if anything was sent. The first error ends it: Postgres
// skips the statements after a failed one.
func (p *pipe) run() error {
	if len(p.steps) == 0 {
		return p.pipeline.Close()
	}
	if p.readOnly {
		p.sendCommand(pg.CommitTx)
	}
	err := p.pipeline.Sync()
	for i := 0; err == nil && i < len(p.steps); i++ {
		err = p.result(p.steps[i])
	}
	return errors.Join(err, p.pipeline.Close())
}

func (p *pipe) result(s step) error {
	result, err := p.pipeline.GetResults()
	if err != nil {
		return fmt.Errorf("store: %s: %w", s.name, err)
	}
	reader, ok := result.(*pgconn.ResultReader)
	if !ok {
		return fmt.Errorf("store: %s: no result", s.name)
	}
	var malformed error
	for reader.NextRow() {
		if s.read == nil || malformed != nil {
			continue
		}
		r := row{values: reader.Values()}
		s.read(&r)
		malformed = r.err
	}
	tag, err := reader.Close()
	switch {
	case err != nil:
		return fmt.Errorf("store: %s: %w", s.name, err)
	case malformed != nil:
		return fmt.Errorf("store: %s: %w", s.name, malformed)
	case s.want != anyCount && tag.RowsAffected() != s.want:
		return fmt.Errorf("store: %s touched %d rows, not %d", s.name, tag.RowsAffected(), s.want)
	}
	return nil
}

// hotStatements are prepared on every connection of the hot path.
var hotStatements = func() []pg.Statement {
	list := []pg.Statement{
		ledger.EnsureWallets, ledger.LockWallets, readWallets, selectVersions, pg.SelectEpoch, readFeatures, readKeys,
		readEvents, readCounters, readBilled, chargeWallet, chargeBalance, chargeWallets, chargeBalances,
		countUse, countUses, insertBilledPeriod, insertBilled, lockDeduplication,
	}
	for _, insert := range eventInserts {
		list = append(list, insert.one, insert.many)
	}
	return list
}()

// prepareAll prepares the statements of the hot path on a connection.
func prepareAll(ctx context.Context, conn *pgx.Conn) error {
	for _, f := range txCommands {
		if _, err := conn.Prepare(ctx, f.Name, f.SQL); err != nil {
			return fmt.Errorf("store: preparing %s: %w", f.SQL, err)
		}
	}
	for _, s := range hotStatements {
		if _, err := conn.Prepare(ctx, s.PreparedName(), s.SQL); err != nil {
			return fmt.Errorf("store: preparing %s: %w", s.Name, err)
		}
	}
	return nil
}
