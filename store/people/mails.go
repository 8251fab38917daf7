package people

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"purser/fault"
	"purser/store/internal/pg"
)

// Mail is a message in the outbox.
type Mail = pg.Mail

// Outbox has the mails that wait to be sent. They belong to the installation, so no
// application's queue has them.
type Outbox struct{ handles *Handles }

// ClaimedMail is a mail that this node sends.
type ClaimedMail struct {
	Mail
	Tries int // with this one
}

// maxWaitingResets is how many password resets wait at most. Anyone can ask for one, and each
// takes its time to send.
const maxWaitingResets = 1000

// Queue writes mails that no other change comes with: password resets, unless too many wait.
func (o Outbox) Queue(ctx context.Context, mails ...Mail) error {
	return o.handles.inUserTx(ctx, func(ctx context.Context, tx pgx.Tx) error {
		waiting, err := pg.FindSQL(ctx, tx, "waiting resets", pgx.RowTo[int], `SELECT count(*) FROM (SELECT 1 FROM mails WHERE kind = 'password-reset' LIMIT $1) w`, maxWaitingResets)
		if err != nil {
			return err
		}
		if waiting >= maxWaitingResets {
			return fault.Newf(fault.Overloaded, "Too many password resets wait to be mailed. Try again in a few minutes.")
		}
		return pg.QueueMail(ctx, tx.Conn(), mails...)
	})
}

// Claim takes the mail that has been due longest, password resets last, or reports that none is due. Until the
// lease ends no other node takes it; a node that dies loses it.
func (o Outbox) Claim(ctx context.Context, now int64, lease time.Duration) (m ClaimedMail, found bool, err error) {
	err = o.handles.pool.QueryRow(ctx, `
		UPDATE mails SET tries = tries + 1, due_at = $1 + $2
		WHERE id = coalesce(
			(SELECT id FROM mails WHERE due_at <= $1 AND kind <> 'password-reset' ORDER BY due_at, id LIMIT 1 FOR UPDATE SKIP LOCKED),
			(SELECT id FROM mails WHERE due_at <= $1 AND kind = 'password-reset' ORDER BY due_at, id LIMIT 1 FOR UPDATE SKIP LOCKED))
		RETURNING id, kind, sealed, created_at, expires_at, tries`, now, lease.Milliseconds()).
		Scan(&m.ID, &m.Kind, &m.Sealed, &m.CreatedAt, &m.ExpiresAt, &m.Tries)
	if errors.Is(err, pgx.ErrNoRows) {
		return m, false, nil
	}
	if err != nil {
		return m, false, fmt.Errorf("store: claim mail: %w", err)
	}
	return m, true, nil
}

// Remove deletes a mail that was sent, refused or is too late. When another node has
// claimed it since, nothing changes.
func (o Outbox) Remove(ctx context.Context, m ClaimedMail) error {
	_, err := pg.ExecSQL(ctx, o.handles.pool, "remove mail", `DELETE FROM mails WHERE id = $1 AND tries = $2`, m.ID, m.Tries)
	return err
}

// Retry makes a mail due again. When another node has claimed it since, nothing changes.
func (o Outbox) Retry(ctx context.Context, m ClaimedMail, due int64) error {
	_, err := pg.ExecSQL(ctx, o.handles.pool, "retry mail", `UPDATE mails SET due_at = $3 WHERE id = $1 AND tries = $2`, m.ID, m.Tries, due)
	return err
}

// maxExpired is how many mails one statement deletes.
const maxExpired = 1000

// RemoveExpired deletes mails that are of no use any more, for an installation that sends
// none: nothing else would.
func (o Outbox) RemoveExpired(ctx context.Context, now int64) error {
	for {
		removed, err := pg.ExecSQL(ctx, o.handles.pool, "remove expired mails", `
			DELETE FROM mails WHERE id IN (SELECT id FROM mails WHERE expires_at <= $1 LIMIT $2)`, now, maxExpired)
		if err != nil || removed < maxExpired {
			return err
		}
	}
}

// MailQueue describes the mails that wait.
type MailQueue struct {
	Waiting int64
	Since   int64 // when the oldest was written; zero for none
}

// Waiting counts the mails that wait to be sent.
func (o Outbox) Waiting(ctx context.Context) (MailQueue, error) {
	return pg.FindSQL(ctx, o.handles.pool, "waiting mails", pgx.RowToStructByPos[MailQueue], `SELECT count(*), coalesce(min(created_at), 0) FROM mails`)
}
