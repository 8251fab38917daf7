package store

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"purser/ids"
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

// txCommand begins or ends a transaction. It is prepared like every statement: parsing
// it would cost a single event as much as writing it.
type txCommand struct{ name, sql string }

var (
	beginTx       = txCommand{"purser_begin", "BEGIN"}
	beginReadOnly = txCommand{"purser_begin_read_only", "BEGIN READ ONLY"}
	beginSnapshot = txCommand{"purser_begin_snapshot", "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"}
	commitTx      = txCommand{"purser_commit", "COMMIT"}
)

var txCommands = []txCommand{beginTx, beginReadOnly, beginSnapshot, commitTx}

func (p *pipe) sendCommand(f txCommand) {
	p.pipeline.SendQueryPrepared(f.name, nil, nil, nil)
	p.steps = append(p.steps, step{name: f.sql, want: anyCount})
}

// text sends a statement without parameters that is not prepared.
func (p *pipe) text(sql string) {
	p.pipeline.SendQueryParams(sql, nil, nil, nil, nil)
	p.steps = append(p.steps, step{name: sql, want: anyCount})
}

// send sends a prepared statement with binary parameters, the application's id first.
// The row-level policies are set to that one application: a list of all applications of
// a batch would be read again for each row.
func (p *pipe) send(s statement, read func(*row), params ...[]byte) {
	if p.readOnly && len(p.steps) == 0 {
		p.sendCommand(beginReadOnly)
	}
	if app := ids.ID(params[0]); app != p.app {
		p.text(setApplication(app))
		p.app = app
	}
	p.pipeline.SendQueryPrepared(s.preparedName(), params, binaryFormat, binaryFormat)
	p.steps = append(p.steps, step{name: s.name, read: read, want: anyCount})
}

// sendText sends a statement that is not prepared on the connection.
func (p *pipe) sendText(s statement, read func(*row), params ...[]byte) {
	p.pipeline.SendQueryParams(s.sql, params, nil, binaryFormat, binaryFormat)
	p.steps = append(p.steps, step{name: s.name, read: read, want: anyCount})
}

// sendCounted sends a statement that must affect exactly want rows.
func (p *pipe) sendCounted(s statement, want int64, params ...[]byte) {
	p.send(s, nil, params...)
	p.steps[len(p.steps)-1].want = want
}

// sendRows sends columns after the parameters that all rows share: one row by the
// scalar statement, several by the array statement, none not at all. A caller without a
// scalar statement passes the array statement twice.
func (p *pipe) sendRows(one, many statement, columns []column, shared ...[]byte) {
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
		p.sendCommand(commitTx)
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

// preparedName is the statement's name on a connection of the hot path.
func (s statement) preparedName() string { return "purser_" + strconv.Itoa(s.number) }

// hotStatements are prepared on every connection of the hot path.
var hotStatements = []statement{
	ensureWallets, lockWallets, readWallets, selectVersions, selectEpoch, readFeatures, readKeys,
	readEvents, readCounters, readBilled, insertPlainEvent, chargeWallet, chargeBalance, insertPlainEvents, insertEvents, chargeWallets, chargeBalances,
	countUses, insertBilled, lockDeduplication,
}

// prepareAll prepares the statements of the hot path on a connection.
func prepareAll(ctx context.Context, conn *pgx.Conn) error {
	for _, f := range txCommands {
		if _, err := conn.Prepare(ctx, f.name, f.sql); err != nil {
			return fmt.Errorf("store: preparing %s: %w", f.sql, err)
		}
	}
	for _, s := range hotStatements {
		if _, err := conn.Prepare(ctx, s.preparedName(), s.sql); err != nil {
			return fmt.Errorf("store: preparing %s: %w", s.name, err)
		}
	}
	return nil
}
