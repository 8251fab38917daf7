package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"purser/fault"
	"purser/ids"
	"purser/tenancy/audit"
	"purser/tenancy/credential"
)

// Account is what a sign-in is checked against.
type Account struct {
	UserID         ids.ID
	Encoded        string // the password's hash
	ChangedAt      int64  // when the password was
	TemporaryUntil int64  // when a password from the command line ends; zero for a chosen one
	HasFactor      bool   // a code is asked for as well
}

// Expired reports a password from the command line that was not replaced in time.
func (a Account) Expired(now int64) bool { return a.TemporaryUntil != 0 && now >= a.TemporaryUntil }

// Account finds an account by its address. One without a password does not exist
// here: nobody can sign in to it.
func (e Auth) Account(ctx context.Context, email string) (a Account, err error) {
	err = e.store.pool.QueryRow(ctx, `
		SELECT u.id, p.encoded, p.changed_at, coalesce(p.temporary_until, 0), f.user_id IS NOT NULL
		FROM users u JOIN passwords p ON p.user_id = u.id LEFT JOIN second_factors f ON f.user_id = u.id
		WHERE u.email = $1`, email).Scan(&a.UserID, &a.Encoded, &a.ChangedAt, &a.TemporaryUntil, &a.HasFactor)
	if errors.Is(err, pgx.ErrNoRows) {
		return a, fault.New(fault.PathNotFound)
	}
	if err != nil {
		return a, fmt.Errorf("store: account by address: %w", err)
	}
	return a, nil
}

// How many old counts a new attempt sweeps away.
const sweptAttempts = 100

// Attempt is what was decided about an attempt.
type Attempt struct {
	Wait time.Duration // until it may be made; zero when it was counted and may be made now
	// ReachedLimit marks the one attempt that makes the address reach AddressLimit.
	ReachedLimit bool
}

// Attempt counts an attempt before it is made, or says how long it has to wait. It
// counts as failed until ForgetAttempts: several at once cannot slip through
// between the look and the count. Address is the count of the address in this window, or
// zero for an attempt that is counted by its subject alone.
func (e Auth) Attempt(ctx context.Context, subject, address credential.Hash, now int64) (decided Attempt, err error) {
	err = e.store.people(ctx, func(ctx context.Context, tx pgx.Tx) error {
		decided = Attempt{}
		old := now - credential.ForgottenAfter.Milliseconds()
		_, err := tx.Exec(ctx, `DELETE FROM login_failures WHERE subject IN (
			SELECT subject FROM login_failures WHERE failed_at < $1 LIMIT $2 FOR UPDATE SKIP LOCKED)`, old, sweptAttempts)
		if err != nil {
			return fmt.Errorf("store: sweep attempts: %w", err)
		}
		was, err := lockAttempts(ctx, tx, subject, now)
		if err != nil {
			return err
		}
		if decided.Wait = was.Wait(now); decided.Wait > 0 {
			return nil
		}
		if address != (credential.Hash{}) {
			// Locked after the subject, always in this order.
			all, err := lockAttempts(ctx, tx, address, now)
			if err != nil {
				return err
			}
			if all.Count >= credential.AddressLimit {
				if decided.Wait = was.GuardedWait(now); decided.Wait > 0 {
					return nil
				}
			}
			decided.ReachedLimit = all.Count+1 == credential.AddressLimit
		}
		next := was.Next(now)
		_, err = tx.Exec(ctx, `UPDATE login_failures SET failures = $2, failed_at = $3 WHERE subject = $1`, subject[:], next.Count, next.LastAt)
		if err != nil {
			return fmt.Errorf("store: count attempt: %w", err)
		}
		if address == (credential.Hash{}) {
			return nil
		}
		_, err = tx.Exec(ctx, `UPDATE login_failures SET failures = failures + 1, failed_at = $2 WHERE subject = $1`, address[:], now)
		if err != nil {
			return fmt.Errorf("store: count attempt at address: %w", err)
		}
		return nil
	})
	return decided, err
}

// lockAttempts reads a count for the rest of the transaction. It is made where it is
// missing: a row that is not there cannot be locked.
func lockAttempts(ctx context.Context, tx pgx.Tx, subject credential.Hash, now int64) (was credential.Attempts, err error) {
	_, err = tx.Exec(ctx, `INSERT INTO login_failures (subject, failures, failed_at) VALUES ($1, 0, $2) ON CONFLICT (subject) DO NOTHING`, subject[:], now)
	if err != nil {
		return was, fmt.Errorf("store: ensure attempts: %w", err)
	}
	err = tx.QueryRow(ctx, `SELECT failures, failed_at FROM login_failures WHERE subject = $1 FOR UPDATE`, subject[:]).Scan(&was.Count, &was.LastAt)
	if err != nil {
		return was, fmt.Errorf("store: lock attempts: %w", err)
	}
	return was, nil
}

// ForgetAttempts is for an attempt that has succeeded. It removes the count of the
// subject. Of the address it takes back this attempt only: the others were made from
// other networks, perhaps by an attacker.
func (e Auth) ForgetAttempts(ctx context.Context, subject, address credential.Hash) error {
	if _, err := e.store.pool.Exec(ctx, `DELETE FROM login_failures WHERE subject = $1`, subject[:]); err != nil {
		return fmt.Errorf("store: forget attempts: %w", err)
	}
	if address == (credential.Hash{}) {
		return nil
	}
	if _, err := e.store.pool.Exec(ctx, `UPDATE login_failures SET failures = failures - 1 WHERE subject = $1 AND failures > 0`, address[:]); err != nil {
		return fmt.Errorf("store: take back attempt at address: %w", err)
	}
	return nil
}

// ChangePassword keeps another password, and ends the sessions in all other
// browsers: one of them may be why it is changed. Was is the hash that the current
// password was checked against, empty for none: a password that was replaced since, such
// as by an operator's reset, is a RevisionConflict.
func (p User) ChangePassword(ctx context.Context, was, encoded, token string, by audit.Actor) error {
	return p.store.people(ctx, func(ctx context.Context, tx pgx.Tx) error {
		var current string
		err := tx.QueryRow(ctx, `SELECT encoded FROM passwords WHERE user_id = $1 FOR UPDATE`, p.id).Scan(&current)
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return fmt.Errorf("store: lock password: %w", err)
		}
		if current != was {
			return fault.Newf(fault.RevisionConflict, "Your password was changed. Sign in with the new one.")
		}
		if err := putPassword(ctx, tx, p.id, encoded, by.At, 0); err != nil {
			return err
		}
		if err := endSessions(ctx, tx, p.id, token); err != nil {
			return err
		}
		return p.auditOwn(ctx, tx, by, "account.password", audit.Fields{"password": "changed"})
	})
}

// auditOwn records what a person did to their own account in the log of each of their
// organizations, whose owners rely on it.
func (p User) auditOwn(ctx context.Context, tx pgx.Tx, by audit.Actor, action string, after audit.Fields) error {
	return auditEverywhere(ctx, tx, p.id, by, audit.Action{Action: action, Target: p.id.Format(ids.User), After: after})
}

// RehashPassword keeps a costlier hash of the same password, unless the password
// was changed in the meantime.
func (p User) RehashPassword(ctx context.Context, was, encoded string) error {
	_, err := p.store.pool.Exec(ctx, `UPDATE passwords SET encoded = $3 WHERE user_id = $1 AND encoded = $2`, p.id, was, encoded)
	if err != nil {
		return fmt.Errorf("store: rehash password: %w", err)
	}
	return nil
}

// putPassword keeps a password, for good or until the given moment.
func putPassword(ctx context.Context, tx pgx.Tx, user ids.ID, encoded string, now, temporaryUntil int64) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO passwords (user_id, encoded, changed_at, temporary_until) VALUES ($1, $2, $3, nullif($4::bigint, 0))
		ON CONFLICT (user_id) DO UPDATE SET
			encoded = excluded.encoded, changed_at = excluded.changed_at, temporary_until = excluded.temporary_until`,
		user, encoded, now, temporaryUntil)
	if err != nil {
		return fmt.Errorf("store: put password: %w", err)
	}
	return nil
}
