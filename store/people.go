package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"purser/fault"
	"purser/ids"
	"purser/tenancy"
)

// Auth has what is asked before it is known who is there: a session by its
// token, an account by its address, an invitation by its link.
type Auth struct {
	store *Store
}

// Auth is where people come in.
func (s *Store) Auth() Auth { return Auth{store: s} }

// User reads and writes what is one person's own.
type User struct {
	store *Store
	id    ids.ID
}

// User is the door to the rows of one person.
func (s *Store) User(id ids.ID) User { return User{store: s, id: id} }

// people runs work in one transaction on the rows of people.
func (s *Store) people(ctx context.Context, work func(context.Context, pgx.Tx) error) error {
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error { return work(ctx, tx) })
}

// PageContext is what a person sees around the page that they are on.
type PageContext struct {
	User          tenancy.User
	HasFactor     bool                   // they have an authenticator
	MustChange    bool                   // their password is temporary
	Organizations []tenancy.Organization // all that they are a member of, by name
	Org           tenancy.Organization   // the one that was asked for
	Member        tenancy.Member
	Applications  []tenancy.Application // of that one, by name
}

// PageContext reads a person's surroundings, in the organization of the slug or in none.
// An organization that they are not a member of does not exist for them.
func (p User) PageContext(ctx context.Context, orgSlug string) (s PageContext, err error) {
	if err := p.readAccount(ctx, &s); err != nil {
		return s, err
	}
	rows, err := p.store.pool.Query(ctx, `
		SELECT o.id, o.slug, o.name, o.requires_factor, o.created_at, m.role, m.permissions, m.created_at
		FROM members m JOIN organizations o ON o.id = m.org_id
		WHERE m.user_id = $1 ORDER BY o.name, o.id`, p.id)
	if err != nil {
		return s, fmt.Errorf("store: memberships: %w", err)
	}
	found := false
	_, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (none struct{}, err error) {
		var o tenancy.Organization
		m := tenancy.Member{UserID: p.id}
		var permissions []string
		if err := row.Scan(&o.ID, &o.Slug, &o.Name, &o.RequiresFactor, &o.CreatedAt, &m.Role, &permissions, &m.CreatedAt); err != nil {
			return none, err
		}
		m.OrgID, m.Custom = o.ID, tenancy.StoredPermissions(permissions)
		s.Organizations = append(s.Organizations, o)
		if o.Slug == orgSlug {
			s.Org, s.Member, found = o, m, true
		}
		return none, nil
	})
	if err != nil {
		return s, fmt.Errorf("store: memberships: %w", err)
	}
	if orgSlug == "" {
		return s, nil
	}
	if !found {
		return s, fault.New(fault.PathNotFound)
	}
	s.Applications, err = p.store.Org(s.Org.ID).Applications(ctx)
	return s, err
}

// readAccount reads the person's account and how it is protected.
func (p User) readAccount(ctx context.Context, s *PageContext) error {
	err := p.store.pool.QueryRow(ctx, `
		SELECT u.id, u.email, u.name, u.created_at, f.user_id IS NOT NULL, w.temporary_until IS NOT NULL
		FROM users u LEFT JOIN second_factors f ON f.user_id = u.id LEFT JOIN passwords w ON w.user_id = u.id
		WHERE u.id = $1`, p.id).
		Scan(&s.User.ID, &s.User.Email, &s.User.Name, &s.User.CreatedAt, &s.HasFactor, &s.MustChange)
	if errors.Is(err, pgx.ErrNoRows) {
		return fault.New(fault.PathNotFound)
	}
	if err != nil {
		return fmt.Errorf("store: select account: %w", err)
	}
	return nil
}

// Profile reads the person's account.
func (p User) Profile(ctx context.Context) (u tenancy.User, err error) {
	err = p.store.pool.QueryRow(ctx, `SELECT id, email, name, created_at FROM users WHERE id = $1`, p.id).
		Scan(&u.ID, &u.Email, &u.Name, &u.CreatedAt)
	if errors.Is(err, pgx.ErrNoRows) {
		return u, fault.New(fault.PathNotFound)
	}
	if err != nil {
		return u, fmt.Errorf("store: select user: %w", err)
	}
	return u, nil
}

// Rename gives the person another name.
func (p User) Rename(ctx context.Context, name string) error {
	if _, err := p.store.pool.Exec(ctx, `UPDATE users SET name = $2 WHERE id = $1`, p.id, name); err != nil {
		return fmt.Errorf("store: rename user: %w", err)
	}
	return nil
}
