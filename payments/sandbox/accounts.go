package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"

	"purser/ids"
	"purser/payments/sandbox/engine"
	"purser/payments/sandbox/persist"
)

// Accounts stores the accounts of applications, as rows.
type Accounts interface {
	// Update reads the wanted rows of an account, calls change, and stores what it
	// returns. Updates of an application are serialized across all nodes. Nothing is
	// stored when change fails.
	Update(ctx context.Context, app ids.ID, want persist.Want, change func(persist.Session) (persist.Change, error)) error
	// View reads a consistent snapshot of an account.
	View(ctx context.Context, app ids.ID, want persist.Want, read func(persist.Session) error) error
	// Find returns the key of the object of a kind with the id or alias, by one index
	// lookup. For an account stored as a document it reports found with an empty key.
	Find(ctx context.Context, app ids.ID, kind, name string, byAlias bool) (key string, found bool, err error)
	// Due lists at most limit applications whose WakeAt has passed.
	Due(ctx context.Context, at int64, limit int) ([]ids.ID, error)
}

// errUnchanged ends an update without storing anything.
var errUnchanged = errors.New("sandbox: nothing changed")

// update changes an account. Due timers fire first, each at its own time, and timers
// that the change makes due fire in the same transaction, up to a limit. The objects
// with the keys are read together with the account; others are read lazily.
func (s *Server) update(ctx context.Context, app ids.ID, change func(*engine.Account, engine.Env) error, keys ...string) error {
	// Lock before the store acquires a connection: changes that wait for the account's
	// row would hold all connections of the sandbox.
	done, err := waitFor(ctx, s.changes, app)
	if err != nil {
		return err
	}
	defer done()
	for caughtUp := false; !caughtUp && err == nil; {
		caughtUp, err = s.updateOnce(ctx, app, change, keys)
	}
	if errors.Is(err, errUnchanged) {
		return nil
	}
	return err
}

// updateOnce is one transaction of an update. When more timers are due than one
// transaction fires, it commits those and reports that the change was not made, so that
// an interrupted clock advance resumes where it stopped.
func (s *Server) updateOnce(ctx context.Context, app ids.ID, change func(*engine.Account, engine.Env) error, keys []string) (changed bool, err error) {
	due := false
	want := engine.Wanted(keys...)
	err = s.options.Accounts.Update(ctx, app, want, func(session persist.Session) (stored persist.Change, err error) {
		account, err := engine.OpenStored(session, want, s.baseURLs(app))
		if err != nil {
			return persist.Change{}, err
		}
		env, err := s.newEnv(account)
		if err != nil {
			return persist.Change{}, err
		}
		err = engine.Guard(func() error {
			if changed = account.Fire(env); !changed {
				return nil
			}
			if err := change(account, env); err != nil {
				return err
			}
			account.Fire(env)
			return nil
		})
		if err != nil {
			return persist.Change{}, err
		}
		stored, err = account.Change(env)
		due = account.IsDeliveryDue(s.realNow()) || account.IsTimerDue(s.realNow())
		return stored, err
	})
	if err == nil && due {
		s.dirty.add(app)
	}
	return changed, err
}

// errTimerDue ends a view of an account with a due timer.
var errTimerDue = errors.New("sandbox: a timer is due")

// view reads an account. Due timers fire first, so that no outdated state is shown.
func (s *Server) view(ctx context.Context, app ids.ID, read func(*engine.Account, engine.Env) error, keys ...string) error {
	err := s.read(ctx, app, func(account *engine.Account, env engine.Env) error {
		if next, timed := account.Next(); timed && next <= env.Now {
			return errTimerDue
		}
		return read(account, env)
	}, keys...)
	if errors.Is(err, errTimerDue) {
		return s.update(ctx, app, read, keys...)
	}
	return err
}

// maxReads is how many reads of one application run concurrently. Each holds one of the
// store's four sandbox connections: the rest is left to other applications.
const maxReads = 2

// read reads an account as stored, without firing due timers.
func (s *Server) read(ctx context.Context, app ids.ID, read func(*engine.Account, engine.Env) error, keys ...string) error {
	done, err := waitFor(ctx, s.reads, app)
	if err != nil {
		return err
	}
	defer done()
	want := engine.Wanted(keys...)
	return s.options.Accounts.View(ctx, app, want, func(session persist.Session) error {
		account, err := engine.OpenStored(session, want, s.baseURLs(app))
		if err != nil {
			return err
		}
		env, err := s.newEnv(account)
		if err != nil {
			return err
		}
		return engine.Guard(func() error { return read(account, env) })
	})
}

// newEnv is the environment of a change: the account's time and a securely seeded
// random source.
func (s *Server) newEnv(account *engine.Account) (engine.Env, error) {
	var seed [32]byte
	if _, err := io.ReadFull(s.options.Random, seed[:]); err != nil {
		return engine.Env{}, fmt.Errorf("sandbox: read randomness: %w", err)
	}
	return engine.Env{
		Now:    engine.Time(account.Now(s.realNow()) / 1000),
		Random: rand.New(rand.NewChaCha8(seed)),
	}, nil
}

func (s *Server) realNow() int64 { return s.options.Now().UnixMilli() }

// baseURLs are the addresses of the application's account.
func (s *Server) baseURLs(app ids.ID) engine.BaseURLs {
	name := app.Format(ids.Application)
	return engine.BaseURLs{
		Site:     s.options.BaseURL + "/sandbox/apps/" + name,
		Webhooks: s.ownWebhooks(),
		Account:  "acct_" + strings.TrimPrefix(name, ids.Application+"_"),
	}
}
