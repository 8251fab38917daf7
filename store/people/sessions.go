package people

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"purser/fault"
	"purser/ids"
	"purser/store/internal/pg"
)

// Session is one browser that is signed in.
type Session struct {
	ID        ids.ID
	UserID    ids.ID // zero for a sign-in that waits for its code, of 0.1.0
	CreatedAt int64
	SeenAt    int64
	ExpiresAt int64
	Address   string
	Agent     string
	// PasswordAt is when the password that opens the session was set, FactorAt when the
	// authenticator was added whose code was entered; zero for none.
	PasswordAt, FactorAt int64
}

// sessionHash is stored in place of the token: a leaked table opens no session.
func sessionHash(token string) []byte {
	hash := sha256.Sum256([]byte(token))
	return hash[:]
}

// SessionContent reads what a session holds. A session that has ended or never was
// is simply not found; so is one that began before the moment since, however often
// it was used.
func (e Auth) SessionContent(ctx context.Context, token string, since, now int64) (content []byte, found bool, err error) {
	err = e.handles.pool.QueryRow(ctx, `SELECT content FROM sessions WHERE hash = $1 AND created_at > $2 AND expires_at > $3`, sessionHash(token), since, now).Scan(&content)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("store: select session: %w", err)
	}
	return content, true, nil
}

// MaxSessions is how many sessions a user has: a sign-in past it ends the least recently
// used one. The account page lists all of them.
const MaxSessions = 100

// How many sessions that are over a new one sweeps away, and how long after: a node
// whose clock is ahead must not end those of others.
const (
	sweptSessions = 100
	sweptAfter    = 24 * time.Hour
)

// OpenSession keeps a new session, and queues the mails that tell of it. It opens none
// for a user whose password or authenticator was replaced since it was entered: that
// ended all sessions.
func (e Auth) OpenSession(ctx context.Context, token string, s Session, content []byte, mails ...Mail) (bool, error) {
	return pg.Return(ctx, e.handles.inUserTx, func(ctx context.Context, tx pgx.Tx) (opened bool, err error) {
		if !s.UserID.IsZero() {
			passwordAt, factorAt, err := holdCredentials(ctx, tx, s.UserID)
			if err != nil || passwordAt != s.PasswordAt || factorAt != s.FactorAt {
				return opened, err
			}
		}
		if err := sweepSessions(ctx, tx, s); err != nil {
			return opened, err
		}
		_, err = pg.ExecSQL(ctx, tx, "insert session", `
			INSERT INTO sessions (hash, id, user_id, content, created_at, seen_at, expires_at, address, agent)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
			sessionHash(token), s.ID, pg.OrNull(s.UserID), content, s.CreatedAt, s.SeenAt, s.ExpiresAt, s.Address, s.Agent)
		if err != nil {
			return opened, err
		}
		return true, pg.QueueMail(ctx, tx.Conn(), mails...)
	})
}

// sweepSessions deletes expired sessions, and the user's least recently used ones to make
// room for a new one. It skips locked rows, so that it cannot deadlock.
func sweepSessions(ctx context.Context, tx pgx.Tx, s Session) error {
	_, err := pg.ExecSQL(ctx, tx, "sweep sessions", `
		DELETE FROM sessions WHERE hash IN (SELECT hash FROM sessions WHERE expires_at < $1 LIMIT $2 FOR UPDATE SKIP LOCKED)`,
		s.CreatedAt-sweptAfter.Milliseconds(), sweptSessions)
	if err != nil || s.UserID.IsZero() {
		return err
	}
	_, err = pg.ExecSQL(ctx, tx, "end oldest sessions", `
		DELETE FROM sessions WHERE hash IN (SELECT hash FROM sessions WHERE hash IN (
			SELECT hash FROM sessions WHERE user_id = $1 ORDER BY seen_at DESC, id OFFSET $2) FOR UPDATE SKIP LOCKED)`, s.UserID, MaxSessions-1)
	return err
}

// holdCredentials reads when a user's password and authenticator were set, zero for none,
// and keeps both as they are until the transaction ends.
func holdCredentials(ctx context.Context, tx pgx.Tx, user ids.ID) (passwordAt, factorAt int64, err error) {
	err = tx.QueryRow(ctx, `SELECT changed_at FROM passwords WHERE user_id = $1 FOR SHARE`, user).Scan(&passwordAt)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return 0, 0, fmt.Errorf("store: hold password: %w", err)
	}
	// A statement of its own: one that waited for the lock would not see a new row.
	err = tx.QueryRow(ctx, `SELECT created_at FROM second_factors WHERE user_id = $1`, user).Scan(&factorAt)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return 0, 0, fmt.Errorf("store: select factor: %w", err)
	}
	return passwordAt, factorAt, nil
}

// lockCredentials makes changes of a user's password, authenticator and sessions run one
// after the other, and sign-ins wait for them. It comes before locks of several sessions,
// so that they can't deadlock.
func lockCredentials(ctx context.Context, on pg.Querier, user ids.ID) error {
	_, err := pg.ExecSQL(ctx, on, "lock password", `SELECT FROM passwords WHERE user_id = $1 FOR UPDATE`, user)
	return err
}

// ContinueSession writes what a session holds now, and reports whether it is still
// there. One that was ended in the meantime stays ended: a request under way does
// not bring it back.
func (e Auth) ContinueSession(ctx context.Context, token string, s Session, content []byte) (there bool, err error) {
	return e.RenewSession(ctx, token, token, s, content)
}

// RenewSession is ContinueSession under another token.
func (e Auth) RenewSession(ctx context.Context, token, renewed string, s Session, content []byte) (there bool, err error) {
	updated, err := pg.ExecSQL(ctx, e.handles.pool, "update session", `
		UPDATE sessions SET hash = $8, content = $2, user_id = $3, seen_at = $4, expires_at = $5, address = $6, agent = $7 WHERE hash = $1`,
		sessionHash(token), content, pg.OrNull(s.UserID), s.SeenAt, s.ExpiresAt, s.Address, s.Agent, sessionHash(renewed))
	return updated == 1, err
}

// A session is noted as seen at most so often.
const seenEvery = time.Minute

// TouchSession notes that a session is in use, and reports whether that was due. It
// leaves the content alone, which another request may just have written.
func (e Auth) TouchSession(ctx context.Context, token string, s Session) (touched bool, err error) {
	seen, err := pg.ExecSQL(ctx, e.handles.pool, "touch session", `
		UPDATE sessions SET seen_at = $2, expires_at = $3, address = $4, agent = $5 WHERE hash = $1 AND seen_at <= $6`,
		sessionHash(token), s.SeenAt, s.ExpiresAt, s.Address, s.Agent, s.SeenAt-seenEvery.Milliseconds())
	return seen == 1, err
}

func (e Auth) CloseSession(ctx context.Context, token string) error {
	_, err := pg.ExecSQL(ctx, e.handles.pool, "delete session", `DELETE FROM sessions WHERE hash = $1`, sessionHash(token))
	return err
}

// Sessions lists where the person is signed in, the last seen first, and says
// which of them has the token.
func (p User) Sessions(ctx context.Context, token string, now int64) (list []Session, current ids.ID, err error) {
	read := func(row pgx.CollectableRow) (Session, error) {
		s := Session{UserID: p.id}
		var this bool
		err := row.Scan(&s.ID, &s.CreatedAt, &s.SeenAt, &s.ExpiresAt, &s.Address, &s.Agent, &this)
		if this {
			current = s.ID
		}
		return s, err
	}
	list, err = pg.CollectSQL(ctx, p.handles.pool, "list sessions", read, `
		SELECT id, created_at, seen_at, expires_at, address, agent, hash = $2
		FROM sessions WHERE user_id = $1 AND expires_at > $3 ORDER BY seen_at DESC, id LIMIT $4`, p.id, sessionHash(token), now, MaxSessions)
	return list, current, err
}

// EndSession ends one of the person's sessions.
func (p User) EndSession(ctx context.Context, id ids.ID) error {
	ended, err := pg.ExecSQL(ctx, p.handles.pool, "end session", `DELETE FROM sessions WHERE user_id = $1 AND id = $2`, p.id, id)
	if err == nil && ended == 0 {
		err = fault.New(fault.PathNotFound)
	}
	return err
}

// EndOtherSessions ends all of the person's sessions but the one of the token.
func (p User) EndOtherSessions(ctx context.Context, token string) error {
	return p.handles.inUserTx(ctx, func(ctx context.Context, tx pgx.Tx) error {
		return endSessions(ctx, tx, p.id, token)
	})
}

// holdSession refuses a session that was ended while its request was under way, and keeps
// it until the transaction ends.
func holdSession(ctx context.Context, tx pgx.Tx, user ids.ID, token string) error {
	held, err := pg.ExecSQL(ctx, tx, "hold session", `SELECT FROM sessions WHERE hash = $1 AND user_id = $2 FOR UPDATE`, sessionHash(token), user)
	if err == nil && held == 0 {
		err = fault.Newf(fault.RevisionConflict, "You were signed out. Sign in again.")
	}
	return err
}

// endSessions ends a person's sessions, all or all but one.
func endSessions(ctx context.Context, on pg.Querier, user ids.ID, exceptToken string) error {
	if err := lockCredentials(ctx, on, user); err != nil {
		return err
	}
	_, err := pg.ExecSQL(ctx, on, "end sessions", `DELETE FROM sessions WHERE user_id = $1 AND hash <> $2`, user, sessionHash(exceptToken))
	return err
}
