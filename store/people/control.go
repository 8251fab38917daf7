package people

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/uptrace/bun"

	"purser/ids"
	"purser/store/internal/pg"
	"purser/tenancy"
)

// Rows of organizations and users. They belong to no application, so no row-level
// policy covers them: every query names the organization.

type organizationRow struct {
	bun.BaseModel `bun:"table:organizations,alias:o"`

	ID        uuid.UUID `bun:"id,pk,type:uuid"`
	Slug      string    `bun:"slug"`
	Name      string    `bun:"name"`
	CreatedAt int64     `bun:"created_at"`

	RequiresFactor bool  `bun:"requires_factor"`
	ArchivedAt     int64 `bun:"archived_at,nullzero"`
}

func (r organizationRow) noun() tenancy.Organization {
	return tenancy.Organization{ID: ids.ID(r.ID), Slug: r.Slug, Name: r.Name, CreatedAt: r.CreatedAt, RequiresFactor: r.RequiresFactor, ArchivedAt: r.ArchivedAt}
}

type applicationRow struct {
	bun.BaseModel `bun:"table:applications,alias:a"`

	ID            uuid.UUID `bun:"id,pk,type:uuid"`
	OrgID         uuid.UUID `bun:"org_id,type:uuid"`
	Slug          string    `bun:"slug"`
	Name          string    `bun:"name"`
	Live          bool      `bun:"is_live"`
	DeploymentURL string    `bun:"deployment_url,nullzero"`
	CreatedAt     int64     `bun:"created_at"`
	ArchivedAt    int64     `bun:"archived_at,nullzero"`
}

func (r applicationRow) noun() tenancy.Application {
	return tenancy.Application{
		ID: ids.ID(r.ID), OrgID: ids.ID(r.OrgID), Slug: r.Slug, Name: r.Name, Live: r.Live,
		DeploymentURL: r.DeploymentURL, CreatedAt: r.CreatedAt, ArchivedAt: r.ArchivedAt,
	}
}

type memberRow struct {
	bun.BaseModel `bun:"table:members,alias:m"`

	OrgID       uuid.UUID `bun:"org_id,pk,type:uuid"`
	UserID      uuid.UUID `bun:"user_id,pk,type:uuid"`
	Role        string    `bun:"role"`
	Permissions []string  `bun:"permissions,array"`
	CreatedAt   int64     `bun:"created_at"`
}

func rowOfMember(m tenancy.Member) memberRow {
	return memberRow{
		OrgID: uuidOf(m.OrgID), UserID: uuidOf(m.UserID), Role: string(m.Role),
		Permissions: m.Custom.Names(), CreatedAt: m.CreatedAt,
	}
}

func (r memberRow) noun() tenancy.Member {
	return tenancy.Member{
		OrgID: ids.ID(r.OrgID), UserID: ids.ID(r.UserID),
		Access:    tenancy.Access{Role: tenancy.Role(r.Role), Custom: tenancy.StoredPermissions(r.Permissions)},
		CreatedAt: r.CreatedAt,
	}
}

func uuidOf(id ids.ID) uuid.UUID { return uuid.UUID(id) }

// peopleTx is one transaction on the rows of organizations and people: the query
// builder, and the connection that it runs on for statements of their own.
type peopleTx struct {
	bun.Tx
	conn *pgx.Conn
}

// control runs work in one transaction on the rows of organizations and people.
func (h *Handles) control(ctx context.Context, work func(context.Context, peopleTx) error) (err error) {
	held, err := h.bun.Conn(ctx)
	if err != nil {
		return fmt.Errorf("store: no connection: %w", err)
	}
	defer func() { err = errors.Join(err, held.Close()) }()
	var conn *pgx.Conn
	err = held.Raw(func(driver any) error {
		conn = driver.(*stdlib.Conn).Conn()
		return nil
	})
	if err != nil {
		return fmt.Errorf("store: no connection: %w", err)
	}
	return held.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error { return work(ctx, peopleTx{tx, conn}) })
}

// maxSlugs is how many spellings of a slug are tried in order: acme, acme-2, acme-3 and
// so on. After them comes a random number of nine digits.
const maxSlugs = 1000

// insertOrganization keeps an organization. Only one that the command line or the setup
// makes has a command name.
func insertOrganization(ctx context.Context, tx peopleTx, o tenancy.Organization, commandName string) (tenancy.Organization, error) {
	taken := func(ctx context.Context, slugs []string) ([]string, error) {
		return pg.CollectSQL(ctx, tx.conn, "list slugs", pgx.RowTo[string], `SELECT slug FROM organizations WHERE slug = ANY ($1)`, slugs)
	}
	slug, err := insertUnderFreeSlug(ctx, o.Slug, taken, func(ctx context.Context, slug string) (int64, error) {
		return pg.ExecSQL(ctx, tx.conn, "insert organization", `
			INSERT INTO organizations (id, slug, name, created_at, requires_factor, command_name) VALUES ($1, $2, $3, $4, $5, nullif($6, ''))
			ON CONFLICT (slug) DO NOTHING`, o.ID, slug, o.Name, o.CreatedAt, o.RequiresFactor, commandName)
	})
	o.Slug = slug
	return o, err
}

var insertAppState = pg.Declare("insert app state", `
	INSERT INTO app_state (app_id, org_id, created_at) VALUES ($1, $2, $3)`)

// insertApplication writes the application and its state row, without which
// nothing of it could be written.
func insertApplication(ctx context.Context, tx peopleTx, a tenancy.Application) (tenancy.Application, error) {
	taken := func(ctx context.Context, slugs []string) ([]string, error) {
		return pg.CollectSQL(ctx, tx.conn, "list slugs", pgx.RowTo[string], `SELECT slug FROM applications WHERE org_id = $1 AND slug = ANY ($2)`, a.OrgID, slugs)
	}
	slug, err := insertUnderFreeSlug(ctx, a.Slug, taken, func(ctx context.Context, slug string) (int64, error) {
		return pg.ExecSQL(ctx, tx.conn, "insert application", `
			INSERT INTO applications (id, org_id, slug, name, is_live, deployment_url, created_at) VALUES ($1, $2, $3, $4, $5, nullif($6, ''), $7)
			ON CONFLICT (org_id, slug) DO NOTHING`, a.ID, a.OrgID, slug, a.Name, a.Live, a.DeploymentURL, a.CreatedAt)
	})
	if err != nil {
		return a, err
	}
	a.Slug = slug
	if _, err := tx.conn.Exec(ctx, pg.SetApplication(a.ID)); err != nil {
		return a, fmt.Errorf("store: name the application: %w", err)
	}
	if _, err := tx.conn.Exec(ctx, insertAppState.SQL, uuidOf(a.ID), uuidOf(a.OrgID), a.CreatedAt); err != nil {
		return a, fmt.Errorf("store: %s: %w", insertAppState.Name, err)
	}
	return a, nil
}

// insertUnderFreeSlug inserts a row under the slug, or else under its first spelling that
// is not taken. It tries another one only if that was taken since.
func insertUnderFreeSlug(ctx context.Context, slug string, taken func(context.Context, []string) ([]string, error), insert func(context.Context, string) (int64, error)) (string, error) {
	if made, err := insert(ctx, slug); err != nil || made == 1 {
		return slug, err
	}
	var numbered []string
	for n := 2; n <= maxSlugs; n++ {
		numbered = append(numbered, tenancy.NumberedSlug(slug, n))
	}
	known, err := taken(ctx, numbered)
	if err != nil {
		return "", err
	}
	numbered = append(numbered, tenancy.NumberedSlug(slug, 100_000_000+rand.IntN(900_000_000)))
	for _, candidate := range numbered {
		if slices.Contains(known, candidate) {
			continue
		}
		if made, err := insert(ctx, candidate); err != nil || made == 1 {
			return candidate, err
		}
	}
	return "", fmt.Errorf("store: no spelling of %q is free", slug)
}
