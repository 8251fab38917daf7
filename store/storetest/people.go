package storetest

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/jackc/pgx/v5"

	"purser/tenancy"
)

// What people come by in other ways in production (the setup page, an invitation) is
// inserted here as rows, so that a test can begin with any organization and any member.

// CreateOrganization inserts an organization, under a free spelling of its slug.
func CreateOrganization(tb testing.TB, url string, o tenancy.Organization) tenancy.Organization {
	tb.Helper()
	base := o.Slug
	OnConnection(tb, url, func(ctx context.Context, conn *pgx.Conn) error {
		for {
			done, err := conn.Exec(ctx, `
				INSERT INTO organizations (id, slug, name, created_at, requires_factor) VALUES ($1, $2, $3, $4, $5)
				ON CONFLICT (slug) DO NOTHING`, o.ID, o.Slug, o.Name, o.CreatedAt, o.RequiresFactor)
			if err != nil || done.RowsAffected() == 1 {
				return err
			}
			o.Slug = tenancy.NumberedSlug(base, 2+rand.IntN(1_000_000_000)) // many tests use one name
		}
	})
	return o
}

// CreateUser inserts an account without a password.
func CreateUser(tb testing.TB, url string, u tenancy.User) {
	tb.Helper()
	Exec(tb, url, `INSERT INTO users (id, email, name, created_at) VALUES ($1, $2, $3, $4)`, u.ID, u.Email, u.Name, u.CreatedAt)
}

// AddMember inserts a membership.
func AddMember(tb testing.TB, url string, m tenancy.Member) {
	tb.Helper()
	Exec(tb, url, `INSERT INTO members (org_id, user_id, role, permissions, created_at) VALUES ($1, $2, $3, $4, $5)`,
		m.OrgID, m.UserID, string(m.Role), m.Custom.Names(), m.CreatedAt)
}

// failer is the part of testing.TB that property tests have as well.
type failer interface {
	Helper()
	Fatal(args ...any)
}

// OnConnection runs work on a connection as the superuser of the tests' cluster.
func OnConnection(tb failer, url string, work func(context.Context, *pgx.Conn) error) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if err := onSession(ctx, url, func(conn *pgx.Conn) error { return work(ctx, conn) }); err != nil {
		tb.Fatal(err)
	}
}
