package people

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"purser/fault"
	"purser/ids"
	"purser/store/internal/pg"
	"purser/tenancy"
	"purser/tenancy/audit"
	"purser/tenancy/credential"
)

// OfferSetup stores the hash of a setup link. It returns false once an account exists.
func (e Auth) OfferSetup(ctx context.Context, link credential.Hash, now int64) (offered bool, err error) {
	links, err := pg.ExecSQL(ctx, e.handles.pool, "offer setup", `
		INSERT INTO setup_links (hash, created_at) SELECT $1, $2 WHERE NOT EXISTS (SELECT FROM users)`, link[:], now)
	return links == 1, err
}

// SetupIsOpen reports whether a setup link is valid.
func (e Auth) SetupIsOpen(ctx context.Context, link credential.Hash) (open bool, err error) {
	err = e.handles.pool.QueryRow(ctx, `
		SELECT EXISTS (SELECT FROM setup_links WHERE hash = $1) AND NOT EXISTS (SELECT FROM users)`, link[:]).Scan(&open)
	if err != nil {
		return false, fmt.Errorf("store: setup link: %w", err)
	}
	return open, nil
}

// IsSetUp reports whether an account exists, which ends the setup.
func (e Auth) IsSetUp(ctx context.Context) (founded bool, err error) {
	if err := e.handles.pool.QueryRow(ctx, `SELECT EXISTS (SELECT FROM users)`).Scan(&founded); err != nil {
		return false, fmt.Errorf("store: look for accounts: %w", err)
	}
	return founded, nil
}

// Bootstrap is the input of the setup: the first user with an organization and an
// application.
type Bootstrap struct {
	User    tenancy.User
	Encoded string // the password's hash
	Org     tenancy.Organization
	App     tenancy.Application
	By      audit.Actor
}

// CreateFirstAccount creates the first account, its organization and its first
// application, and closes every setup link. Two at once create one. Organizations that
// the command line created before have no members and become the first user's: the
// holder of the link runs the installation.
func (e Auth) CreateFirstAccount(ctx context.Context, link credential.Hash, f Bootstrap) (Bootstrap, error) {
	err := e.handles.control(ctx, func(ctx context.Context, tx peopleTx) error {
		// Blocks other account creations until this transaction ends.
		if _, err := tx.ExecContext(ctx, `LOCK TABLE users IN SHARE ROW EXCLUSIVE MODE`); err != nil {
			return fmt.Errorf("store: lock users: %w", err)
		}
		var open bool
		err := tx.conn.QueryRow(ctx, `
			SELECT EXISTS (SELECT FROM setup_links WHERE hash = $1) AND NOT EXISTS (SELECT FROM users)`, link[:]).Scan(&open)
		if err != nil {
			return fmt.Errorf("store: setup link: %w", err)
		}
		if !open {
			return fault.New(fault.PathNotFound)
		}
		if _, err := tx.ExecContext(ctx, `DELETE FROM setup_links`); err != nil {
			return fmt.Errorf("store: close setup links: %w", err)
		}
		if err := insertAccount(ctx, tx.conn, f.User, f.Encoded); err != nil {
			return err
		}
		return f.assignOrganizations(ctx, tx)
	})
	return f, err
}

// assignOrganizations gives the first user their organizations, including the named
// one.
func (f *Bootstrap) assignOrganizations(ctx context.Context, tx peopleTx) error {
	var orphans []organizationRow
	err := tx.NewSelect().Model(&orphans).Where("NOT EXISTS (SELECT FROM members m WHERE m.org_id = o.id)").OrderExpr("o.id").Scan(ctx)
	if err != nil {
		return fmt.Errorf("store: organizations without members: %w", err)
	}
	owned := false
	for _, row := range orphans {
		org := row.noun()
		if org.Name == f.Org.Name && !owned {
			f.Org, owned = org, true
			continue
		}
		if err := f.addOwner(ctx, tx, org); err != nil {
			return err
		}
	}
	if !owned {
		// The command line finds it by its name: who holds the setup link runs the installation.
		if f.Org, err = insertOrganization(ctx, tx, f.Org, f.Org.Name); err != nil {
			return err
		}
	}
	if err := f.addOwner(ctx, tx, f.Org); err != nil {
		return err
	}
	f.App.OrgID = f.Org.ID
	var found []applicationRow
	err = tx.NewSelect().Model(&found).Where("a.org_id = ?", uuidOf(f.Org.ID)).Where("a.name = ?", f.App.Name).Where("a.is_live = ?", f.App.Live).
		OrderExpr("a.id").Limit(1).Scan(ctx)
	if err != nil {
		return fmt.Errorf("store: application by name: %w", err)
	}
	if len(found) == 1 {
		f.App = found[0].noun()
		return nil
	}
	if f.App, err = insertApplication(ctx, tx, f.App); err != nil {
		return err
	}
	return pg.AppendAudit(ctx, tx.conn, f.Org.ID, f.By, applicationCreated(f.App))
}

func (f *Bootstrap) addOwner(ctx context.Context, tx peopleTx, org tenancy.Organization) error {
	row := rowOfMember(tenancy.Member{OrgID: org.ID, UserID: f.User.ID, Access: tenancy.Access{Role: tenancy.Owner}, CreatedAt: f.User.CreatedAt})
	if _, err := tx.NewInsert().Model(&row).Exec(ctx); err != nil {
		return fmt.Errorf("store: insert owner: %w", err)
	}
	return pg.AppendAudit(ctx, tx.conn, org.ID, f.By, organizationCreated(org, f.User.ID))
}

// MaxOwnedOrganizations is how many organizations a user can create: each has limits of
// its own.
const MaxOwnedOrganizations = 100

// CreateOrganization creates an organization that the user owns, up to the limit. One of
// the user's with its id is returned as it is.
func (p User) CreateOrganization(ctx context.Context, org tenancy.Organization, by audit.Actor) (tenancy.Organization, error) {
	err := p.handles.control(ctx, func(ctx context.Context, tx peopleTx) (err error) {
		// The lock keeps two of them from passing the limit at once.
		if err := lockUser(ctx, tx.conn, p.id); err != nil {
			return err
		}
		var made []organizationRow // by the same form, which was sent twice
		err = tx.NewSelect().Model(&made).Where("o.id = ?", uuidOf(org.ID)).
			Where("EXISTS (SELECT FROM members m WHERE m.org_id = o.id AND m.user_id = ?)", uuidOf(p.id)).Scan(ctx)
		if err != nil {
			return fmt.Errorf("store: select organization: %w", err)
		}
		if len(made) > 0 {
			org = made[0].noun()
			return nil
		}
		var owned int
		err = tx.conn.QueryRow(ctx, `SELECT count(*) FROM members WHERE user_id = $1 AND role = $2`, p.id, string(tenancy.Owner)).Scan(&owned)
		if err != nil {
			return fmt.Errorf("store: count organizations: %w", err)
		}
		if owned >= MaxOwnedOrganizations {
			return fault.Newf(fault.InvalidRequest, "You own %d organizations, and an account can own %d. Archived ones count too.", owned, MaxOwnedOrganizations)
		}
		if org, err = insertOrganization(ctx, tx, org, ""); err != nil {
			return err
		}
		row := rowOfMember(tenancy.Member{OrgID: org.ID, UserID: p.id, Access: tenancy.Access{Role: tenancy.Owner}, CreatedAt: org.CreatedAt})
		if _, err := tx.NewInsert().Model(&row).Exec(ctx); err != nil {
			return fmt.Errorf("store: insert owner: %w", err)
		}
		return pg.AppendAudit(ctx, tx.conn, org.ID, by, organizationCreated(org, p.id))
	})
	return org, err
}

func organizationCreated(org tenancy.Organization, owner ids.ID) audit.Action {
	return audit.Action{Action: "organization.create", Target: org.ID.Format(ids.Organization), After: audit.Fields{"name": org.Name, "owner": owner.Format(ids.User)}}
}

// insertAccount stores a user and their password, unless the address is taken.
func insertAccount(ctx context.Context, conn *pgx.Conn, u tenancy.User, encoded string) error {
	var made string
	err := conn.QueryRow(ctx, `
		INSERT INTO users (id, email, name, created_at) VALUES ($1, $2, $3, $4) ON CONFLICT (email) DO NOTHING RETURNING email`,
		u.ID, u.Email, u.Name, u.CreatedAt).Scan(&made)
	if errors.Is(err, pgx.ErrNoRows) {
		return fault.Newf(fault.AlreadyExists, "An account with this email already exists. Sign in first.")
	}
	if err != nil {
		return fmt.Errorf("store: insert user: %w", err)
	}
	_, err = pg.ExecSQL(ctx, conn, "insert password", `INSERT INTO passwords (user_id, encoded, changed_at) VALUES ($1, $2, $3)`, u.ID, encoded, u.CreatedAt)
	return err
}
