package pg

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"purser/fault"
	"purser/ids"
	"purser/metering"
	"purser/tenancy"
	"purser/tenancy/audit"
)

const (
	// MaxAttempts is how often a transaction that Postgres rolled back for the sake of
	// another one is tried, with a pause of up to retryPause times the number of tries.
	MaxAttempts = 5
	retryPause  = 20 * time.Millisecond
	// Enough to tell Postgres to roll back when the caller's own time is over.
	rollbackTimeout = time.Second
)

// ErrCommitUnknown marks a COMMIT whose outcome never arrived. The work may have
// been done or not; only a second look with the same ids can tell.
var ErrCommitUnknown = errors.New("store: the outcome of the commit is unknown")

// ErrNoAppState means that the application was never created, or its row is lost.
var ErrNoAppState = errors.New("store: the application has no state row")

// App is the rows of one application. The handles of the packages above have one
// each, and add what can be asked of it.
type App struct {
	DB    *DB
	Scope tenancy.Scope
	By    audit.Actor // who acts by hand; zero for none

	begins  TxCommand // how its transactions begin; BEGIN when empty
	clocked bool      // they read the database's clock when they begin
	inTurn  bool      // they wait for others of the organization
}

// Tx is one transaction in the name of one application.
type Tx struct {
	Conn  *pgx.Conn
	Scope tenancy.Scope
	By    audit.Actor // who acts by hand; zero for none
	// Distributed reports that the catalog's statistics say nothing about tenant tables.
	Distributed bool

	clock    int64            // the database's when the transaction began; zero if it was not read
	posted   []metering.Entry // so far
	notified bool             // it inserted notifications
}

// In is a transaction, plain or inside of a type that adds methods to it.
type In interface{ in() *Tx }

func (tx *Tx) in() *Tx { return tx }

// Transact runs work in one transaction of the application. When Postgres gave
// it up in favour of another transaction, all of it runs again.
func (a App) Transact(ctx context.Context, work func(context.Context, *Tx) error) error {
	return Retry(ctx, func() error { return a.Attempt(ctx, work) })
}

// Retry repeats a transaction that Postgres gave up, a few times.
func Retry(ctx context.Context, try func() error) error {
	for attempt := 1; ; attempt++ {
		err := try()
		if attempt == MaxAttempts || !WasRolledBack(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(rand.N(retryPause * time.Duration(attempt))):
		}
	}
}

// RetryKeyed runs a transaction again when a unique index refused its row, or the reply to
// COMMIT was lost: the next attempt finds the row, this request's or another's.
func RetryKeyed[T any](ctx context.Context, transact func(context.Context, func(context.Context, T) error) error, work func(context.Context, T) error) (err error) {
	var unknown error
	for range MaxAttempts {
		err = transact(ctx, work)
		if unknown != nil && (fault.Is(err, fault.Overloaded) || fault.Is(err, fault.OperationInProgress)) {
			return unknown // it did not look: the work may be done
		}
		if errors.Is(err, ErrCommitUnknown) {
			unknown = err
		} else if SQLState(err) != UniqueViolation {
			break
		}
	}
	return err
}

// Return is transact for work with a result.
func Return[T, R any](ctx context.Context, transact func(context.Context, func(context.Context, T) error) error, work func(context.Context, T) (R, error)) (result R, err error) {
	err = transact(ctx, func(ctx context.Context, tx T) error {
		result, err = work(ctx, tx)
		return err
	})
	return result, err
}

// ReturnBoth is Return for work with two results.
func ReturnBoth[T, A, B any](ctx context.Context, transact func(context.Context, func(context.Context, T) error) error, work func(context.Context, T) (A, B, error)) (a A, b B, err error) {
	err = transact(ctx, func(ctx context.Context, tx T) error {
		a, b, err = work(ctx, tx)
		return err
	})
	return a, b, err
}

// Snapshot runs work in one transaction that sees one moment, and changes nothing.
func (a App) Snapshot(ctx context.Context, work func(context.Context, *Tx) error) error {
	a.begins = BeginSnapshot
	return a.Transact(ctx, work)
}

// Clocked reads the database's clock when a transaction begins, in the same round trip:
// DatabaseClock returns that time.
func (a App) Clocked() App {
	a.clocked = true
	return a
}

// turnsAtOnce is enough to have one transaction commit while another works.
const turnsAtOnce = 2

// InTurn is for transactions that lock a wallet and are written to the audit log: few of
// an organization run at once. The others would only wait for the head of the log, with
// connections that other tenants need and with wallets that batches of events wait for.
func (a App) InTurn() App {
	a.inTurn = !a.By.IsZero()
	return a
}

// Attempt is Transact without a second try.
func (a App) Attempt(ctx context.Context, work func(context.Context, *Tx) error) error {
	if a.inTurn {
		done, err := a.DB.turns.Take(ctx, a.Scope.OrgID)
		if err != nil {
			return fault.New(fault.Overloaded)
		}
		defer done()
	}
	pooled, release, err := a.acquire(ctx)
	if err != nil {
		return err
	}
	// The pool ends a connection that comes back inside a transaction, so neither
	// an error nor a panic hands its setting to the next request.
	defer release()
	conn := pooled.Conn()
	clock, err := a.begin(ctx, conn)
	if err != nil {
		return fmt.Errorf("store: begin: %w", err)
	}
	tx := &Tx{Conn: conn, Scope: a.Scope, By: a.By, Distributed: a.DB.Distributed, clock: clock}
	if err := work(ctx, tx); err != nil {
		Rollback(ctx, conn)
		return err
	}
	if err := commit(ctx, conn); err != nil {
		return err
	}
	if len(tx.posted) > 0 {
		a.DB.entries(a.Scope, tx.posted)
	}
	if tx.notified {
		a.DB.NotificationsCommitted(a.Scope)
	}
	return nil
}

// WalletChanged tells the batchers of this node that a wallet has moved. Other nodes
// find out by its version; here that would only be slower.
func (a App) WalletChanged(identity string) {
	a.DB.changed.Range(func(listener, _ any) bool {
		listener.(*walletListener).changed(a.Scope.AppID, identity)
		return true
	})
}

// Posted notes a journal entry, for those who count entries after the commit.
func (tx *Tx) Posted(e metering.Entry) { tx.posted = append(tx.posted, e) }

// Release returns a connection to its pool. A closed one leaves the pool at once: its
// cleanup takes up to 15 s when the server is silent, and would occupy a place for
// as long.
func Release(conn *pgxpool.Conn) {
	if conn.Conn().IsClosed() {
		conn.Hijack()
		return
	}
	conn.Release()
}

// TxCommand begins or ends a transaction. It is prepared like every statement: parsing
// it would cost a single event as much as writing it.
type TxCommand struct{ Name, SQL string }

// The commands of a transaction.
var (
	BeginTx       = TxCommand{"purser_begin", "BEGIN"}
	BeginReadOnly = TxCommand{"purser_begin_read_only", "BEGIN READ ONLY"}
	BeginSnapshot = TxCommand{"purser_begin_snapshot", "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"}
	CommitTx      = TxCommand{"purser_commit", "COMMIT"}
)

// clockName is the name under which connections prepare readClock.
const clockName = "purser_clock"

// begin opens a transaction and names its application to the row-level policies,
// in one round trip. The two are messages of their own, and not prepared: the
// text differs for each application. The clock is zero unless the application is Clocked.
func (a App) begin(ctx context.Context, conn *pgx.Conn) (clock int64, err error) {
	if a.clocked {
		if _, err := conn.Prepare(ctx, clockName, readClock); err != nil { // free the second time
			return 0, err
		}
	}
	pipeline := conn.PgConn().StartPipeline(ctx)
	pipeline.SendQueryParams(a.beginCommand(), nil, nil, nil, nil)
	pipeline.SendQueryParams(SetApplication(a.Scope.AppID), nil, nil, nil, nil)
	if a.clocked {
		pipeline.SendQueryPrepared(clockName, nil, nil, nil)
	}
	err = pipeline.Sync()
	for err == nil {
		var result any
		if result, err = pipeline.GetResults(); result == nil {
			break
		}
		if reader, ok := result.(*pgconn.ResultReader); ok && err == nil {
			var unreadable error
			for reader.NextRow() {
				clock, unreadable = strconv.ParseInt(string(reader.Values()[0]), 10, 64)
			}
			_, err = reader.Close()
			err = errors.Join(err, unreadable)
		}
	}
	return clock, errors.Join(err, pipeline.Close())
}

// beginCommand is the text that begins the application's transactions.
func (a App) beginCommand() string { return cmp.Or(a.begins.SQL, BeginTx.SQL) }

// SetApplication names the application to the policies, until the transaction ends.
func SetApplication(app ids.ID) string {
	return "SET LOCAL purser.app_id = '" + app.String() + "'"
}

func commit(ctx context.Context, conn *pgx.Conn) error {
	tag, err := conn.Exec(ctx, "COMMIT")
	if err != nil {
		return fmt.Errorf("%w: %w", ErrCommitUnknown, err)
	}
	if tag.String() != "COMMIT" { // Postgres answers ROLLBACK when a statement failed unnoticed
		return fmt.Errorf("store: the transaction was rolled back at commit")
	}
	return nil
}

// Rollback ends a transaction that failed.
func Rollback(ctx context.Context, conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTimeout)
	defer cancel()
	_, _ = conn.Exec(ctx, "ROLLBACK") // where this fails, the pool ends the connection
}

// WasRolledBack reports an error after which the transaction has certainly left
// nothing behind, and which another try may well avoid.
func WasRolledBack(err error) bool {
	if errors.Is(err, ErrCommitUnknown) {
		return false
	}
	switch SQLState(err) {
	case "40001", "40P01", "55P03", // serialization, deadlock, lock timeout
		"25P03": // ended between two statements: this process got no CPU
		return true
	}
	return false
}

// Codes of Postgres errors that the store reacts to.
const (
	UniqueViolation       = "23505"
	DivisionByZero        = "22012"
	UndefinedTable        = "42P01"
	InsufficientPrivilege = "42501"
	TooManyConnections    = "53300"
	QueryCanceled         = "57014" // by statement_timeout, or by an administrator
)

// SQLState is the code of a Postgres error, or empty. Decisions rest on it alone:
// a distributed Postgres fills neither constraint nor table names.
func SQLState(err error) string {
	if refused, ok := errors.AsType[*pgconn.PgError](err); ok {
		return refused.Code
	}
	return ""
}
