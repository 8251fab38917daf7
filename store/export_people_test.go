package store

import (
	"context"
	"math/rand/v2"

	"github.com/jackc/pgx/v5/pgconn"

	"purser/fault"
	"purser/ids"
	"purser/tenancy"
	"purser/tenancy/audit"
)

// AuditInApp writes an entry in a transaction of the application, as methods that
// people use do.
func AuditInApp(ctx context.Context, a App, action, target string, after ...audit.Fields) error {
	return a.transact(ctx, func(ctx context.Context, tx appTx) error {
		var facts audit.Fields
		for _, f := range after {
			facts = f
		}
		return tx.Audit(ctx, action, target, nil, facts)
	})
}

// What people come by in other ways in production (the setup page, an invitation) is
// inserted here as rows. Tests of other packages have storetest.

// CreateOrganization inserts an organization, under a free spelling of its slug.
func CreateOrganization(ctx context.Context, s *Store, o tenancy.Organization) (tenancy.Organization, error) {
	base := o.Slug
	for {
		done, err := s.db.Pool.Exec(ctx, `
			INSERT INTO organizations (id, slug, name, created_at, requires_factor) VALUES ($1, $2, $3, $4, $5)
			ON CONFLICT (slug) DO NOTHING`, o.ID, o.Slug, o.Name, o.CreatedAt, o.RequiresFactor)
		if err != nil || done.RowsAffected() == 1 {
			return o, err
		}
		o.Slug = tenancy.NumberedSlug(base, 2+rand.IntN(1_000_000_000)) // many tests use one name
	}
}

// CreateUser inserts an account without a password.
func CreateUser(ctx context.Context, s *Store, u tenancy.User) error {
	made, err := s.db.Pool.Exec(ctx, `
		INSERT INTO users (id, email, name, created_at) VALUES ($1, $2, $3, $4) ON CONFLICT (email) DO NOTHING`, u.ID, u.Email, u.Name, u.CreatedAt)
	return onlyOnce(made, err)
}

// AddMember inserts a membership.
func AddMember(ctx context.Context, s *Store, m tenancy.Member) error {
	made, err := s.db.Pool.Exec(ctx, `
		INSERT INTO members (org_id, user_id, role, permissions, created_at) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (org_id, user_id) DO NOTHING`, m.OrgID, m.UserID, string(m.Role), m.Custom.Names(), m.CreatedAt)
	return onlyOnce(made, err)
}

// onlyOnce refuses a row that was there already.
func onlyOnce(made pgconn.CommandTag, err error) error {
	if err == nil && made.RowsAffected() == 0 {
		return fault.New(fault.AlreadyExists)
	}
	return err
}

// PasswordOf reads the hash of a user's password.
func PasswordOf(ctx context.Context, s *Store, user ids.ID) (encoded string, err error) {
	err = s.db.Pool.QueryRow(ctx, `SELECT encoded FROM passwords WHERE user_id = $1`, user).Scan(&encoded)
	return encoded, err
}
