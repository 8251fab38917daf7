package people

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"purser/fault"
	"purser/ids"
	"purser/store/internal/pg"
	"purser/tenancy/audit"
	"purser/tenancy/credential"
)

// Account is what a sign-in is verified against.
type Account struct {
	UserID         ids.ID
	Encoded        string // the password's hash
	ChangedAt      int64  // when the password was changed
	TemporaryUntil int64  // expiry of a password set by the command line; zero for a chosen one
	FactorAt       int64  // when the second factor was added; zero for none
}

// Expired reports a password from the command line that was not replaced in time.
func (a Account) Expired(now int64) bool { return a.TemporaryUntil != 0 && now >= a.TemporaryUntil }

// Account finds an account by its email address. One without a password is not found,
// since it cannot sign in.
func (e Auth) Account(ctx context.Context, email string) (Account, error) {
	return pg.FindSQL(ctx, e.handles.pool, "account by address", pgx.RowToStructByPos[Account], `
		SELECT u.id, p.encoded, p.changed_at, coalesce(p.temporary_until, 0), coalesce(f.created_at, 0)
		FROM users u JOIN passwords p ON p.user_id = u.id LEFT JOIN second_factors f ON f.user_id = u.id
		WHERE u.email = $1`, email)
}

// How many expired counts each attempt deletes.
const sweptAttempts = 100

// Attempt is the decision about a sign-in attempt.
type Attempt struct {
	Wait time.Duration // until it is allowed; zero when it was counted and is allowed now
	// ReachedLimit marks the one attempt that makes the address reach AddressLimit.
	ReachedLimit bool
}

// Attempt counts an attempt before it is made, or returns how long it has to wait. It
// counts as failed until ForgetAttempts, so concurrent attempts cannot bypass the
// limit. Address is the count of the address in this window, or zero for an attempt
// that is counted by its subject alone.
func (e Auth) Attempt(ctx context.Context, subject, address credential.Hash, now int64) (Attempt, error) {
	return pg.Return(ctx, e.handles.inUserTx, func(ctx context.Context, tx pgx.Tx) (decided Attempt, err error) {
		if decided, err = countAttempt(ctx, tx, subject, address, now); err != nil {
			return decided, err
		}
		// Last, because a transaction that holds expired counts must not wait for another.
		_, err = pg.ExecSQL(ctx, tx, "sweep attempts", `DELETE FROM login_failures WHERE subject IN (
			SELECT subject FROM login_failures WHERE failed_at < $1 LIMIT $2 FOR UPDATE SKIP LOCKED)`, now-credential.ForgottenAfter.Milliseconds(), sweptAttempts)
		return decided, err
	})
}

func countAttempt(ctx context.Context, tx pgx.Tx, subject, address credential.Hash, now int64) (decided Attempt, err error) {
	was, err := lockAttempts(ctx, tx, subject, now)
	if err != nil {
		return decided, err
	}
	if decided.Wait = was.Wait(now); decided.Wait > 0 {
		return decided, nil
	}
	if address != (credential.Hash{}) {
		// Locked after the subject, always in this order.
		all, err := lockAttempts(ctx, tx, address, now)
		if err != nil {
			return decided, err
		}
		if all.Count >= credential.AddressLimit {
			if decided.Wait = was.GuardedWait(now); decided.Wait > 0 {
				return decided, nil
			}
		}
		decided.ReachedLimit = all.Count+1 == credential.AddressLimit
	}
	next := was.Next(now)
	_, err = pg.ExecSQL(ctx, tx, "count attempt", `UPDATE login_failures SET failures = $2, failed_at = $3 WHERE subject = $1`, subject[:], next.Count, next.LastAt)
	if err != nil || address == (credential.Hash{}) {
		return decided, err
	}
	_, err = pg.ExecSQL(ctx, tx, "count attempt at address", `UPDATE login_failures SET failures = failures + 1, failed_at = $2 WHERE subject = $1`, address[:], now)
	return decided, err
}

// lockAttempts reads and locks a count. It creates a missing one: a row that does not
// exist cannot be locked. The update changes nothing; it locks a row that is there.
func lockAttempts(ctx context.Context, tx pgx.Tx, subject credential.Hash, now int64) (was credential.Attempts, err error) {
	err = tx.QueryRow(ctx, `
		INSERT INTO login_failures (subject, failures, failed_at) VALUES ($1, 0, $2)
		ON CONFLICT (subject) DO UPDATE SET failures = login_failures.failures RETURNING failures, failed_at`, subject[:], now).Scan(&was.Count, &was.LastAt)
	if err != nil {
		return was, fmt.Errorf("store: lock attempts: %w", err)
	}
	return was, nil
}

// ForgetAttempts records a successful attempt. It deletes the count of the subject and
// subtracts this attempt from the address: the others came from other networks, perhaps
// from an attacker.
func (e Auth) ForgetAttempts(ctx context.Context, subject, address credential.Hash) error {
	if _, err := pg.ExecSQL(ctx, e.handles.pool, "forget attempts", `DELETE FROM login_failures WHERE subject = $1`, subject[:]); err != nil {
		return err
	}
	if address == (credential.Hash{}) {
		return nil
	}
	_, err := pg.ExecSQL(ctx, e.handles.pool, "take back attempt at address", `UPDATE login_failures SET failures = failures - 1 WHERE subject = $1 AND failures > 0`, address[:])
	return err
}

// ChangePassword stores a new password and ends the sessions in all other browsers: one
// of them may be the reason for the change. Was is the hash that the current password
// was verified against, empty for none: a password that was replaced since, such as by
// an operator's reset, is a RevisionConflict. So is a session that was ended since.
func (p User) ChangePassword(ctx context.Context, was, encoded, token string, by audit.Actor, mails ...Mail) error {
	return p.handles.inUserTx(ctx, func(ctx context.Context, tx pgx.Tx) error {
		var current string
		err := tx.QueryRow(ctx, `SELECT encoded FROM passwords WHERE user_id = $1 FOR UPDATE`, p.id).Scan(&current)
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return fmt.Errorf("store: lock password: %w", err)
		}
		if current != was {
			return fault.Newf(fault.RevisionConflict, "Your password was changed. Sign in with the new one.")
		}
		if was != "" { // a first password is not set in a session
			if err := holdSession(ctx, tx, p.id, token); err != nil {
				return err
			}
		}
		if err := putPassword(ctx, tx, p.id, encoded, by.At, 0); err != nil {
			return err
		}
		return p.finishChange(ctx, tx, token, mails, by, "account.password", audit.Fields{"password": "changed"})
	})
}

// finishChange is the end of a change of credentials, in its transaction: the sessions in
// all browsers but the token's end, the user is mailed, and the change is audited.
func (p User) finishChange(ctx context.Context, tx pgx.Tx, token string, mails []Mail, by audit.Actor, action string, after audit.Fields) error {
	if err := endSessions(ctx, tx, p.id, token); err != nil {
		return err
	}
	if err := pg.QueueMail(ctx, tx.Conn(), mails...); err != nil {
		return err
	}
	return p.auditOwn(ctx, tx, by, action, after)
}

// auditOwn records a user's action on their own account in the audit log of each of
// their organizations, whose owners rely on it.
func (p User) auditOwn(ctx context.Context, tx pgx.Tx, by audit.Actor, action string, after audit.Fields) error {
	return auditAllOrganizations(ctx, tx, p.id, by, audit.Action{Action: action, Target: p.id.Format(ids.User), After: after})
}

// RehashPassword stores a costlier hash of the same password, unless the password has
// changed meanwhile.
func (p User) RehashPassword(ctx context.Context, was, encoded string) error {
	_, err := pg.ExecSQL(ctx, p.handles.pool, "rehash password", `UPDATE passwords SET encoded = $3 WHERE user_id = $1 AND encoded = $2`, p.id, was, encoded)
	return err
}

// putPassword stores a password, permanent or until the given time, and ends the links
// that would replace it.
func putPassword(ctx context.Context, tx pgx.Tx, user ids.ID, encoded string, now, temporaryUntil int64) error {
	_, err := pg.ExecSQL(ctx, tx, "put password", `
		INSERT INTO passwords (user_id, encoded, changed_at, temporary_until) VALUES ($1, $2, $3, nullif($4::bigint, 0))
		ON CONFLICT (user_id) DO UPDATE SET
			encoded = excluded.encoded, changed_at = excluded.changed_at, temporary_until = excluded.temporary_until`,
		user, encoded, now, temporaryUntil)
	if err != nil {
		return err
	}
	_, err = pg.ExecSQL(ctx, tx, "end reset links", `DELETE FROM password_resets WHERE user_id = $1`, user)
	return err
}
