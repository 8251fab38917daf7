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

// pipe sends several statements in one round trip and reads their results in
// order.
type pipe struct {
	pipeline *pgconn.Pipeline
	steps    []step
	app      ids.ID // the one that the policies were told of
	reading  bool   // what is sent, if anything is, is a transaction of its own
}

type step struct {
	name string
	read func(*row) // each row of the result; nil to ignore them
	want int64      // rows to be affected; anyCount to ignore it
}

const anyCount = -1

var binaryFormat = []int16{1}

func newPipe(ctx context.Context, conn *pgx.Conn) *pipe {
	return &pipe{pipeline: conn.PgConn().StartPipeline(ctx)}
}

// newReading makes a pipe that reads in a transaction of its own.
func newReading(ctx context.Context, conn *pgx.Conn) *pipe {
	p := newPipe(ctx, conn)
	p.reading = true
	return p
}

// frame is what begins or ends a transaction. It is prepared as everything else
// is: parsing it would cost a lone use as much as writing its event.
type frame struct{ name, sql string }

var (
	beginning         = frame{"purser_begin", "BEGIN"}
	beginningReadOnly = frame{"purser_begin_read_only", "BEGIN READ ONLY"}
	beginningSnapshot = frame{"purser_begin_snapshot", "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"}
	ending            = frame{"purser_commit", "COMMIT"}
)

var hotFrames = []frame{beginning, beginningReadOnly, beginningSnapshot, ending}

func (p *pipe) frame(f frame) {
	p.pipeline.SendQueryPrepared(f.name, nil, nil, nil)
	p.steps = append(p.steps, step{name: f.sql, want: anyCount})
}

// text sends a statement without parameters that is not worth preparing.
func (p *pipe) text(sql string) {
	p.pipeline.SendQueryParams(sql, nil, nil, nil, nil)
	p.steps = append(p.steps, step{name: sql, want: anyCount})
}

// send sends a prepared statement with its parameters in binary, the application's
// id first. The policies are told of that application and no other: a list of all
// that share a batch would be read again for each row.
func (p *pipe) send(s statement, read func(*row), params ...[]byte) {
	if p.reading && len(p.steps) == 0 {
		p.frame(beginningReadOnly)
	}
	if app := ids.ID(params[0]); app != p.app {
		p.text(setApplication(app))
		p.app = app
	}
	p.pipeline.SendQueryPrepared(s.preparedName(), params, binaryFormat, binaryFormat)
	p.steps = append(p.steps, step{name: s.name, read: read, want: anyCount})
}

// sendText sends a statement that the connection has not prepared.
func (p *pipe) sendText(s statement, read func(*row), params ...[]byte) {
	p.pipeline.SendQueryParams(s.sql, params, nil, binaryFormat, binaryFormat)
	p.steps = append(p.steps, step{name: s.name, read: read, want: anyCount})
}

// sendCounted sends a statement that must affect so many rows.
func (p *pipe) sendCounted(s statement, want int64, params ...[]byte) {
	p.send(s, nil, params...)
	p.steps[len(p.steps)-1].want = want
}

// sendRows sends columns, behind the parameters that all rows share: one row by the
// statement that takes values, more by the one that takes arrays, none not at all.
// A caller that has no statement for one row gives the other twice.
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

// run makes the round trip, if there is anything to ask for. The first error ends
// it: Postgres skips whatever was sent behind a statement that failed.
func (p *pipe) run() error {
	if len(p.steps) == 0 {
		return p.pipeline.Close()
	}
	if p.reading {
		p.frame(ending)
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

// preparedName is what the statement is called on a connection of the hot path.
func (s statement) preparedName() string { return "purser_" + strconv.Itoa(s.number) }

// hotStatements are those that batches send.
var hotStatements = []statement{
	ensureWallets, lockWallets, readWallets, readVersions, selectEpoch, readFeatures, readKeys,
	readEvents, readCounters, readBilled, insertPlainEvent, chargeWallet, chargeBalance, insertPlainEvents, insertEvents, chargeWallets, chargeBalances,
	countUses, insertBilled, lockDeduplication,
}

// prepareAll readies a new connection for the statements of the hot path.
func prepareAll(ctx context.Context, conn *pgx.Conn) error {
	for _, f := range hotFrames {
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
