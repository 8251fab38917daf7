package people

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/jackc/pgx/v5"

	"purser/fault"
	"purser/ids"
	"purser/keys"
	"purser/store/internal/pg"
	"purser/tenancy"
)

// Directory has the few lookups that come before a scope is known. All of them are
// in this file, so that a reader sees how little they return.
type Directory struct {
	handles *Handles
}

// KeyAddress says which application holds a key.
type KeyAddress struct {
	Scope tenancy.Scope
	KeyID ids.ID
}

// KnownKey is KeyByHash for a key that this node has found before.
func (d Directory) KnownKey(hash keys.Hash) (KeyAddress, bool) { return d.handles.keyAddrs.Get(hash) }

// KeyByHash finds the application of a key by the key's hash. That application decides
// whether the key works. An address never changes, so a node caches it; unknown hashes
// are not cached.
func (d Directory) KeyByHash(ctx context.Context, hash keys.Hash) (KeyAddress, error) {
	if address, ok := d.handles.keyAddrs.Get(hash); ok {
		return address, nil
	}
	var a KeyAddress
	err := d.handles.pool.QueryRow(ctx, `SELECT org_id, app_id, key_id FROM key_directory WHERE hash = $1`, hash[:]).
		Scan(&a.Scope.OrgID, &a.Scope.AppID, &a.KeyID)
	if errors.Is(err, pgx.ErrNoRows) {
		return a, fault.New(fault.InvalidAPIKey)
	}
	if err != nil {
		return a, fmt.Errorf("store: key by hash: %w", err)
	}
	d.handles.keyAddrs.Add(hash, a)
	return a, nil
}

// OrgRef is how the command line names an organization: by its id, by its slug, or by
// the name under which the command line or the setup made it. The names that members
// give are not searched, because members could choose the name that an operator is about
// to type. One of the fields is set.
type OrgRef struct {
	ID   ids.ID
	Slug string
	Name string
}

func (r OrgRef) String() string {
	switch {
	case !r.ID.IsZero():
		return r.ID.Format(ids.Organization)
	case r.Slug != "":
		return r.Slug
	}
	return r.Name
}

func (r OrgRef) find(ctx context.Context, conn *pgx.Conn) (id ids.ID, err error) {
	switch {
	case !r.ID.IsZero():
		err = conn.QueryRow(ctx, `SELECT id FROM organizations WHERE id = $1`, r.ID).Scan(&id)
	case r.Slug != "":
		err = conn.QueryRow(ctx, `SELECT id FROM organizations WHERE slug = $1`, r.Slug).Scan(&id)
	default:
		err = conn.QueryRow(ctx, `SELECT id FROM organizations WHERE command_name = $1`, r.Name).Scan(&id)
	}
	if errors.Is(err, pgx.ErrNoRows) {
		if r.Name != "" {
			return id, fault.Newf(fault.PathNotFound, "No organization was named %q by setup or the command line. For one that was created or renamed in the dashboard, use its id or slug from its settings.", r.Name)
		}
		return id, fault.Newf(fault.PathNotFound, "There is no organization %s.", r)
	}
	if err != nil {
		return id, fmt.Errorf("store: find organization: %w", err)
	}
	return id, nil
}

// OrganizationsNamed lists the ids of organizations with the given name, whether members
// or the command line made them, oldest first and at most the given number.
func (d Directory) OrganizationsNamed(ctx context.Context, name string, most int) ([]ids.ID, error) {
	return pg.CollectSQL(ctx, d.handles.pool, "organizations by name", pgx.RowTo[ids.ID], `SELECT id FROM organizations WHERE name = $1 ORDER BY id LIMIT $2`, name, most)
}

// ProvisionIn finds the organization and the application and makes what is missing: an
// organization only when it is given by a name. It is for the command line, whose user
// owns the whole installation. Two of them at once make one application.
func (d Directory) ProvisionIn(ctx context.Context, ref OrgRef, org tenancy.Organization, app tenancy.Application) (tenancy.Application, error) {
	err := d.handles.control(ctx, func(ctx context.Context, tx peopleTx) error {
		if _, err := tx.ExecContext(ctx, `LOCK TABLE organizations IN SHARE ROW EXCLUSIVE MODE`); err != nil {
			return fmt.Errorf("store: lock organizations: %w", err)
		}
		id, err := ref.find(ctx, tx.conn)
		if fault.Is(err, fault.PathNotFound) && ref.Name != "" {
			org, err = insertOrganization(ctx, tx, org, ref.Name)
			id = org.ID
		}
		if err != nil {
			return err
		}
		app.OrgID = id
		var found []applicationRow
		err = tx.NewSelect().Model(&found).
			Where("a.org_id = ?", uuidOf(app.OrgID)).Where("a.name = ?", app.Name).Where("a.is_live = ?", app.Live).
			OrderExpr("a.archived_at IS NOT NULL, a.id").Limit(1).Scan(ctx) // an active one first
		if err != nil {
			return fmt.Errorf("store: application by name: %w", err)
		}
		if len(found) == 1 {
			app = found[0].noun()
			return nil
		}
		if app, err = insertApplication(ctx, tx, app); err != nil {
			return err
		}
		return pg.AppendActive(ctx, tx.conn, app.OrgID, CommandLine(app.CreatedAt), applicationCreated(app))
	})
	return app, err
}

// Scopes lists every application, for work on the whole installation.
func (d Directory) Scopes(ctx context.Context) ([]tenancy.Scope, error) {
	return pg.CollectSQL(ctx, d.handles.pool, "list applications", pgx.RowToStructByPos[tenancy.Scope], `SELECT org_id, id FROM applications ORDER BY id`)
}

// Each runs work for every application. One that fails does not keep the others waiting;
// its error begins with the name. It begins anywhere: if some take all the time, such as
// those on a Citus worker that is silent, the next run reaches others.
func (d Directory) Each(ctx context.Context, name string, work func(context.Context, tenancy.Scope) error) error {
	scopes, err := d.Scopes(ctx)
	if len(scopes) > 0 {
		begin := rand.IntN(len(scopes))
		scopes = slices.Concat(scopes[begin:], scopes[:begin])
	}
	for _, scope := range scopes {
		if ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
		if failed := work(ctx, scope); failed != nil {
			err = errors.Join(err, fmt.Errorf("%s: application %s: %w", name, scope.AppID.Format(ids.Application), failed))
		}
	}
	return err
}

// ScopeOf finds the organization of an application.
func (d Directory) ScopeOf(ctx context.Context, app ids.ID) (tenancy.Scope, error) {
	scope := tenancy.Scope{AppID: app}
	err := d.handles.pool.QueryRow(ctx, `SELECT org_id FROM applications WHERE id = $1`, app).Scan(&scope.OrgID)
	return scope, pg.FoundSQL("scope of an application", err)
}

// ConnectionScope finds the application of the connection that a provider's webhook
// names. That application's secret decides whether the webhook is genuine.
func (d Directory) ConnectionScope(ctx context.Context, connection ids.ID) (scope tenancy.Scope, err error) {
	err = d.handles.pool.QueryRow(ctx, `SELECT org_id, app_id FROM connection_directory WHERE connection_id = $1`, connection).
		Scan(&scope.OrgID, &scope.AppID)
	return scope, pg.FoundSQL("scope of a connection", err)
}

// OrganizationIDs lists every organization, for work on the whole installation.
func (d Directory) OrganizationIDs(ctx context.Context) ([]ids.ID, error) {
	return pg.CollectSQL(ctx, d.handles.pool, "list organizations", pgx.RowTo[ids.ID], `SELECT id FROM organizations ORDER BY id`)
}

// rememberedKeys is how many keys a node remembers the application of.
const rememberedKeys = 10_000
