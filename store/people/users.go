package people

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"purser/fault"
	"purser/ids"
	"purser/store/internal/pg"
	"purser/tenancy"
	"purser/tenancy/audit"
)

// Auth has the lookups before a user is known: a session by its token, an account by
// its email address, an invitation by its link.
type Auth struct {
	handles *Handles
}

// User reads and writes one user's own rows.
type User struct {
	handles *Handles
	id      ids.ID
}

// maxAuditTurns is how often a transaction is tried that needs the heads of several audit
// logs. Each wait between two tries is bounded by lock_timeout.
const maxAuditTurns = 20

// lastTurn marks the context of a transaction that is not repeated.
type lastTurn struct{}

// inUserTx runs work in one transaction on the tables of users. If another transaction holds
// the head of an audit log that it needs, it is rolled back, waits for that head without
// holding anything else, and is repeated. The last time it waits with what it holds: in logs
// that are always in use, a password could not be changed otherwise.
func (h *Handles) inUserTx(ctx context.Context, work func(context.Context, pgx.Tx) error) error {
	for turn := 1; ; turn++ {
		if turn == maxAuditTurns {
			ctx = context.WithValue(ctx, lastTurn{}, true)
		}
		err := pgx.BeginFunc(ctx, h.pool, func(tx pgx.Tx) error { return work(ctx, tx) })
		busy, waits := errors.AsType[pg.AuditHeadBusy](err)
		switch {
		case !waits:
			return err
		case turn == maxAuditTurns:
			return fault.New(fault.Overloaded)
		}
		if _, err := pg.ExecSQL(ctx, h.pool, "wait for audit log", pg.AwaitAuditHead, busy.Org); err != nil {
			return err
		}
	}
}

// lockUser locks a user's row. It is locked before rows of their memberships.
func lockUser(ctx context.Context, on pg.Querier, user ids.ID) error {
	_, err := pg.ExecSQL(ctx, on, "lock user", `SELECT FROM users WHERE id = $1 FOR NO KEY UPDATE`, user)
	return err
}

// PageContext is the user, organization and applications around a dashboard page.
type PageContext struct {
	User          tenancy.User
	MustChange    bool                   // the password is temporary
	PasswordAt    int64                  // when the password was set; zero for none
	FactorAt      int64                  // when the authenticator was added; zero for none
	Organizations []tenancy.Organization // the user's memberships, by name
	Org           tenancy.Organization   // the requested one
	Member        tenancy.Member
	Applications  []tenancy.Application // of Org, by name
}

// PageContext reads the context of a page in the organization of the slug, or in none.
// An organization that the user is not a member of is not found.
func (p User) PageContext(ctx context.Context, orgSlug string) (s PageContext, err error) {
	if err := p.readAccount(ctx, &s); err != nil {
		return s, err
	}
	member := false
	_, err = pg.CollectSQL(ctx, p.handles.pool, "memberships", func(row pgx.CollectableRow) (none struct{}, err error) {
		var o tenancy.Organization
		m := tenancy.Member{UserID: p.id}
		var permissions []string
		if err := row.Scan(&o.ID, &o.Slug, &o.Name, &o.RequiresFactor, &o.CreatedAt, &o.ArchivedAt, &m.Role, &permissions, &m.CreatedAt); err != nil {
			return none, err
		}
		m.OrgID, m.Custom = o.ID, tenancy.StoredPermissions(permissions)
		s.Organizations = append(s.Organizations, o)
		if o.Slug == orgSlug {
			s.Org, s.Member, member = o, m, true
		}
		return none, nil
	}, `
		SELECT o.id, o.slug, o.name, o.requires_factor, o.created_at, coalesce(o.archived_at, 0), m.role, m.permissions, m.created_at
		FROM members m JOIN organizations o ON o.id = m.org_id
		WHERE m.user_id = $1 ORDER BY o.name, o.id`, p.id)
	if err != nil || orgSlug == "" {
		return s, err
	}
	if !member {
		return s, fault.New(fault.PathNotFound)
	}
	s.Applications, err = p.handles.Org(s.Org.ID).Applications(ctx)
	return s, err
}

// readAccount reads the user's account and how it is protected.
func (p User) readAccount(ctx context.Context, s *PageContext) error {
	err := p.handles.pool.QueryRow(ctx, `
		SELECT u.id, u.email, u.name, u.created_at, w.temporary_until IS NOT NULL, coalesce(w.changed_at, 0), coalesce(f.created_at, 0)
		FROM users u LEFT JOIN second_factors f ON f.user_id = u.id LEFT JOIN passwords w ON w.user_id = u.id
		WHERE u.id = $1`, p.id).
		Scan(&s.User.ID, &s.User.Email, &s.User.Name, &s.User.CreatedAt, &s.MustChange, &s.PasswordAt, &s.FactorAt)
	return pg.FoundSQL("select account", err)
}

// Profile reads the user's account.
func (p User) Profile(ctx context.Context) (tenancy.User, error) {
	return pg.FindSQL(ctx, p.handles.pool, "select user", pgx.RowToStructByPos[tenancy.User], `SELECT id, email, name, created_at FROM users WHERE id = $1`, p.id)
}

// Rename changes the user's name. The same name changes nothing and is not audited.
func (p User) Rename(ctx context.Context, name string, by audit.Actor) error {
	return p.handles.inUserTx(ctx, func(ctx context.Context, tx pgx.Tx) error {
		var was string
		err := tx.QueryRow(ctx, `SELECT name FROM users WHERE id = $1 FOR NO KEY UPDATE`, p.id).Scan(&was)
		if err != nil || was == name {
			return pg.FoundSQL("lock user", err)
		}
		if _, err := pg.ExecSQL(ctx, tx, "rename user", `UPDATE users SET name = $2 WHERE id = $1`, p.id, name); err != nil {
			return err
		}
		return auditAllOrganizations(ctx, tx, p.id, by, audit.Action{
			Action: "account.rename", Target: p.id.Format(ids.User), Before: audit.Fields{"name": was}, After: audit.Fields{"name": name},
		})
	})
}
