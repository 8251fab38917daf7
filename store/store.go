package store

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"purser/ids"
	"purser/store/internal/ledger"
	"purser/store/internal/limits"
	"purser/store/internal/pg"
	"purser/store/notifications"
	"purser/store/payments"
	"purser/store/people"
	"purser/store/queue"
	"purser/store/reports"
	"purser/store/rollups"
	"purser/store/verify"
	"purser/tenancy"
)

// DefaultConns is how many connections a store opens at most, without those of the
// hot path.
const DefaultConns = pg.DefaultConns

// Names of the kernel that callers use.
type (
	// Clock is the database's clock as one node reads it.
	Clock = pg.Clock
	// Machine reads the clocks of a node.
	Machine = pg.Machine
	// Deposit is credit that came into a wallet.
	Deposit = ledger.Deposit
	// DepositPage asks for deposits of one wallet.
	DepositPage = ledger.DepositPage
	// Position is where a list of one wallet continues.
	Position = ledger.Position
	// Page asks for a part of a list.
	Page = pg.Page
)

// Options tune a store. The zero value is good for tests and small servers.
type Options struct {
	MaxConns  int          // of the pool; DefaultConns when zero
	MinConns  int          // that the pool keeps open
	Machine   Machine      // the clocks of the node; those of the machine when nil
	Log       *slog.Logger // nil for silence
	Restoring bool         // for the restore itself: others get no connection before it has finished
	// KeepFailures is how long failed requests are kept; DefaultKeepFailures when zero.
	KeepFailures time.Duration
	// KeepDenials is how long denials are kept; DefaultKeepDenials when zero.
	KeepDenials time.Duration
}

// Store opens the handles on one database.
type Store struct {
	db       *pg.DB
	people   *people.Handles
	stats    *reports.Counters
	queues   queue.Queues
	payments *payments.Handles
}

// Open connects to a migrated database.
func Open(ctx context.Context, url string, o Options) (*Store, error) {
	return open(ctx, url, o, limits.Current())
}

func open(ctx context.Context, url string, o Options, session limits.Session) (*Store, error) {
	db, err := pg.Open(ctx, url, pg.Options{MaxConns: o.MaxConns, MinConns: o.MinConns, Machine: o.Machine, Log: o.Log, Restoring: o.Restoring}, session)
	if err != nil {
		return nil, err
	}
	accounts, err := people.Open(db)
	if err != nil {
		db.Close()
		return nil, err
	}
	return &Store{
		db:       db,
		people:   accounts,
		queues:   queue.Open(db),
		payments: payments.Open(db),
		stats:    reports.Open(db, cmp.Or(o.KeepFailures, reports.DefaultKeepFailures), cmp.Or(o.KeepDenials, reports.DefaultKeepDenials)),
	}, nil
}

// Close ends every connection, after those in use are given back.
func (s *Store) Close() {
	s.db.StopClock()
	s.people.Close()
	s.db.Close()
}

// Clock is the database's clock: the time that decides about money, keys and
// sessions, the same on every node.
func (s *Store) Clock() *Clock { return s.db.Clock }

// Reports reads what pages show of an application.
func (s *Store) Reports(scope tenancy.Scope) reports.App { return s.stats.App(scope) }

// Rollups are the usage statistics of an application.
func (s *Store) Rollups(scope tenancy.Scope) rollups.App { return rollups.Open(s.db.App(scope)) }

// Notifications are what an application tells other systems.
func (s *Store) Notifications(scope tenancy.Scope) notifications.App {
	return notifications.Open(s.db.App(scope))
}

// OnNotifications has committed called after each transaction of this node that
// inserted notifications.
func (s *Store) OnNotifications(committed func(tenancy.Scope)) { s.db.OnNotifications(committed) }

// Stats are the counters of this node.
func (s *Store) Stats() *reports.Counters { return s.stats }

// Payments is what is sold and paid in one application.
func (s *Store) Payments(scope tenancy.Scope) payments.App { return s.payments.App(scope) }

// PaymentAccounts are an application's accounts at the payment provider.
func (s *Store) PaymentAccounts(scope tenancy.Scope) payments.Accounts {
	return s.payments.Accounts(scope)
}

// SandboxAccounts is where the payments sandbox keeps its accounts.
func (s *Store) SandboxAccounts() payments.SandboxAccounts { return s.payments.SandboxAccounts() }

// Queue is what one application does later.
func (s *Store) Queue(scope tenancy.Scope) queue.App { return s.queues.App(scope) }

// Queues are the queues of all applications.
func (s *Store) Queues() queue.Queues { return s.queues }

// Org is the rows of one organization.
func (s *Store) Org(id ids.ID) people.Org { return s.people.Org(id) }

// User is the rows of one account.
func (s *Store) User(id ids.ID) people.User { return s.people.User(id) }

// Auth has what happens before an account is known.
func (s *Store) Auth() people.Auth { return s.people.Auth() }

// Directory has the lookups before a scope is known.
func (s *Store) Directory() people.Directory { return s.people.Directory() }

// Outbox has the mails of the installation that wait to be sent.
func (s *Store) Outbox() people.Outbox { return s.people.Outbox() }

// Verification is the verification of one application.
func (s *Store) Verification(scope tenancy.Scope) verify.App { return verify.Open(s.db.App(scope)) }

// Installation is the verification of what concerns all applications.
func (s *Store) Installation() verify.Installation { return verify.OpenInstallation(s.db) }
