package wire

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"purser/ids"
	"purser/store/internal/pg"
)

// Pipe sends several statements in one round trip and reads their results in order.
type Pipe struct {
	pipeline *pgconn.Pipeline
	steps    []step
	app      ids.ID // the application that the row-level policies are set to
	readOnly bool   // runs in a read-only transaction of its own
}

type step struct {
	name string
	read func(*Row) // called for each row; nil to ignore them
	want int64      // expected affected rows; anyCount to ignore them
}

const anyCount = -1

var binaryFormat = []int16{1}

// NewPipe starts a round trip on a connection.
func NewPipe(ctx context.Context, conn *pgx.Conn) *Pipe {
	return &Pipe{pipeline: conn.PgConn().StartPipeline(ctx)}
}

// NewReadPipe makes a pipe that runs in a read-only transaction of its own.
func NewReadPipe(ctx context.Context, conn *pgx.Conn) *Pipe {
	p := NewPipe(ctx, conn)
	p.readOnly = true
	return p
}

// SendCommand begins or ends a transaction.
func (p *Pipe) SendCommand(f pg.TxCommand) {
	p.pipeline.SendQueryPrepared(f.Name, nil, nil, nil)
	p.steps = append(p.steps, step{name: f.SQL, want: anyCount})
}

// Text sends a statement without parameters that is not prepared.
func (p *Pipe) Text(sql string) {
	p.pipeline.SendQueryParams(sql, nil, nil, nil, nil)
	p.steps = append(p.steps, step{name: sql, want: anyCount})
}

// Send sends a prepared statement with binary parameters, the application's id first.
// The row-level policies are set to that one application: a list of all applications of
// a batch would be read again for each row.
func (p *Pipe) Send(s pg.Statement, read func(*Row), params ...[]byte) {
	if p.readOnly && len(p.steps) == 0 {
		p.SendCommand(pg.BeginReadOnly)
	}
	if app := ids.ID(params[0]); app != p.app {
		p.Text(pg.SetApplication(app))
		p.app = app
	}
	p.pipeline.SendQueryPrepared(s.PreparedName(), params, binaryFormat, binaryFormat)
	p.steps = append(p.steps, step{name: s.Name, read: read, want: anyCount})
}

// SendText sends a statement that is not prepared on the connection.
func (p *Pipe) SendText(s pg.Statement, read func(*Row), params ...[]byte) {
	p.pipeline.SendQueryParams(s.SQL, params, nil, binaryFormat, binaryFormat)
	p.steps = append(p.steps, step{name: s.Name, read: read, want: anyCount})
}

// sendCounted sends a statement that must affect exactly want rows.
func (p *Pipe) sendCounted(s pg.Statement, want int64, params ...[]byte) {
	p.Send(s, nil, params...)
	p.steps[len(p.steps)-1].want = want
}

// SendRows sends columns after the parameters that all rows share: one row by the
// scalar statement, several by the array statement, none not at all. A caller without a
// scalar statement passes the array statement twice.
func (p *Pipe) SendRows(one, many pg.Statement, columns []Column, shared ...[]byte) {
	switch rows := columns[0].Count; {
	case rows == 0:
	case rows == 1 && one.Name != many.Name:
		for i := range columns {
			shared = append(shared, columns[i].single())
		}
		p.sendCounted(one, 1, shared...)
	default:
		p.sendCounted(many, int64(rows), append(shared, EncodeAll(columns)...)...)
	}
}

// Run makes the round trip, if anything was sent. The first error ends it: Postgres
// skips the statements after a failed one.
func (p *Pipe) Run() error {
	if len(p.steps) == 0 {
		return p.pipeline.Close()
	}
	if p.readOnly {
		p.SendCommand(pg.CommitTx)
	}
	err := p.pipeline.Sync()
	for i := 0; err == nil && i < len(p.steps); i++ {
		err = p.result(p.steps[i])
	}
	return errors.Join(err, p.pipeline.Close())
}

func (p *Pipe) result(s step) error {
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
		r := NewRow(reader.Values())
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
