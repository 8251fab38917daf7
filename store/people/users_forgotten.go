package people

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"purser/ids"
	"purser/store/internal/pg"
	"purser/tenancy"
	"purser/tenancy/audit"
	"purser/tenancy/credential"
)

const (
	// ResetLinkTTL is how long a link that replaces a forgotten password is valid.
	ResetLinkTTL = time.Hour
	// MaxResetLinks is how many of them an account has at once: more requests send nothing,
	// so that an inbox cannot be flooded.
	MaxResetLinks = 3
	// sweptResets is how many expired links each new one deletes.
	sweptResets = 100
)

// OfferReset stores the hash of a link that replaces the password of an address. The
// id is that of the mail that carries it: sending it again replaces the link. Offered is
// false for an address without an account, and for one that has enough links.
func (e Auth) OfferReset(ctx context.Context, id ids.ID, email string, link credential.Hash, now int64) (u tenancy.User, offered bool, err error) {
	err = e.handles.inUserTx(ctx, func(ctx context.Context, tx pgx.Tx) error {
		err := tx.QueryRow(ctx, `
			SELECT u.id, u.email, u.name, u.created_at
			FROM users u JOIN passwords p ON p.user_id = u.id WHERE u.email = $1 FOR NO KEY UPDATE OF u`, email).
			Scan(&u.ID, &u.Email, &u.Name, &u.CreatedAt)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("store: account of a reset: %w", err)
		}
		// In a statement after the lock, so that concurrent mails count each other's links.
		others, err := pg.FindSQL(ctx, tx, "count reset links", pgx.RowTo[int], `SELECT count(*) FROM password_resets WHERE user_id = $1 AND id <> $2 AND expires_at > $3`, u.ID, id, now)
		if err != nil {
			return err
		}
		if others >= MaxResetLinks {
			return nil
		}
		_, err = pg.ExecSQL(ctx, tx, "insert reset link", `
			INSERT INTO password_resets (id, user_id, hash, created_at, expires_at) VALUES ($1, $2, $3, $4, $5)
			ON CONFLICT (id) DO UPDATE SET hash = excluded.hash, created_at = excluded.created_at, expires_at = excluded.expires_at`,
			id, u.ID, link[:], now, now+ResetLinkTTL.Milliseconds())
		if err != nil {
			return err
		}
		offered = true
		// After the user is locked, as when an operator resets the password, so that the two can't deadlock.
		_, err = pg.ExecSQL(ctx, tx, "sweep reset links", `DELETE FROM password_resets WHERE id IN (
			SELECT id FROM password_resets WHERE expires_at <= $1 LIMIT $2 FOR UPDATE SKIP LOCKED)`, now, sweptResets)
		return err
	})
	return u, offered, err
}

// ResetUser finds whose password a link replaces.
func (e Auth) ResetUser(ctx context.Context, link credential.Hash, now int64) (tenancy.User, error) {
	return pg.FindSQL(ctx, e.handles.pool, "user of a reset link", pgx.RowToStructByPos[tenancy.User], `
		SELECT u.id, u.email, u.name, u.created_at FROM password_resets r JOIN users u ON u.id = r.user_id
		WHERE r.hash = $1 AND r.expires_at > $2`, link[:], now)
}

// ReplaceForgotten stores a new password in exchange for a link, which works once, and
// ends all sessions. The second factor stays as it is.
func (e Auth) ReplaceForgotten(ctx context.Context, link credential.Hash, encoded string, by audit.Actor, mails ...Mail) error {
	return e.handles.inUserTx(ctx, func(ctx context.Context, tx pgx.Tx) error {
		// The password is locked before the link, as when it is changed, so that the two can't deadlock.
		_, err := pg.ExecSQL(ctx, tx, "lock password", `
			SELECT FROM passwords WHERE user_id = (SELECT user_id FROM password_resets WHERE hash = $1) FOR UPDATE`, link[:])
		if err != nil {
			return err
		}
		user, err := pg.FindSQL(ctx, tx, "use reset link", pgx.RowTo[ids.ID], `DELETE FROM password_resets WHERE hash = $1 AND expires_at > $2 RETURNING user_id`, link[:], by.At)
		if err != nil {
			return err
		}
		if err := putPassword(ctx, tx, user, encoded, by.At, 0); err != nil {
			return err
		}
		return e.handles.User(user).finishChange(ctx, tx, noToken, mails, by, "account.password", audit.Fields{"password": "replaced by mail"})
	})
}
