package people

import (
	"context"
	"fmt"
	"strconv"

	"purser/fault"
	"purser/ids"
	"purser/store/internal/pg"
	"purser/tenancy"
	"purser/tenancy/audit"
)

func (o Org) Organization(ctx context.Context) (tenancy.Organization, error) {
	var rows []organizationRow
	if err := o.handles.bun.NewSelect().Model(&rows).Where("o.id = ?", uuidOf(o.id)).Scan(ctx); err != nil {
		return tenancy.Organization{}, fmt.Errorf("store: select organization: %w", err)
	}
	if len(rows) == 0 {
		return tenancy.Organization{}, fault.New(fault.PathNotFound)
	}
	return rows[0].noun(), nil
}

// MaxApplications is how many applications members can create in an organization:
// every page lists them, and background tasks visit each.
const MaxApplications = 200

// CreateApplication keeps a new application of the organization, under a free
// spelling of its slug, up to the limit. One with its id is returned as it is.
func (o Org) CreateApplication(ctx context.Context, app tenancy.Application) (tenancy.Application, error) {
	if app.OrgID != o.id {
		return app, fault.New(fault.PathNotFound)
	}
	err := o.handles.control(ctx, func(ctx context.Context, tx peopleTx) (err error) {
		// The lock keeps two of them from passing the limit at once.
		if _, err := o.lock(ctx, tx); err != nil {
			return err
		}
		var made []applicationRow // by the same form, which was sent twice
		err = tx.NewSelect().Model(&made).Where("a.org_id = ?", uuidOf(o.id)).Where("a.id = ?", uuidOf(app.ID)).Scan(ctx)
		if err != nil {
			return fmt.Errorf("store: select application: %w", err)
		}
		if len(made) > 0 {
			app = made[0].noun()
			return nil
		}
		number, err := tx.NewSelect().Model((*applicationRow)(nil)).Where("a.org_id = ?", uuidOf(o.id)).Count(ctx)
		if err != nil {
			return fmt.Errorf("store: count applications: %w", err)
		}
		if number >= MaxApplications {
			return fault.Newf(fault.InvalidRequest, "Your organization has %d applications, the maximum. Archived ones count too. Use another organization.", number)
		}
		if app, err = insertApplication(ctx, tx, app); err != nil {
			return err
		}
		return o.auditActive(ctx, tx, applicationCreated(app))
	})
	return app, err
}

func (o Org) Application(ctx context.Context, id ids.ID) (tenancy.Application, error) {
	var rows []applicationRow
	err := o.handles.bun.NewSelect().Model(&rows).
		Where("a.org_id = ?", uuidOf(o.id)).Where("a.id = ?", uuidOf(id)).Scan(ctx)
	if err != nil {
		return tenancy.Application{}, fmt.Errorf("store: select application: %w", err)
	}
	if len(rows) == 0 {
		return tenancy.Application{}, fault.New(fault.PathNotFound)
	}
	return rows[0].noun(), nil
}

// Applications lists the organization's applications, by name.
func (o Org) Applications(ctx context.Context) (list []tenancy.Application, err error) {
	var rows []applicationRow
	err = o.handles.bun.NewSelect().Model(&rows).
		Where("a.org_id = ?", uuidOf(o.id)).OrderExpr("a.name, a.id").Scan(ctx)
	if err != nil {
		return nil, fmt.Errorf("store: list applications: %w", err)
	}
	for _, row := range rows {
		list = append(list, row.noun())
	}
	return list, nil
}

// UpdateApplication writes the name and the address of an application. With a version,
// settings that aren't of this version are a conflict.
func (o Org) UpdateApplication(ctx context.Context, app tenancy.Application, version ...string) error {
	return o.handles.control(ctx, func(ctx context.Context, tx peopleTx) error {
		var rows []applicationRow
		err := tx.NewSelect().Model(&rows).Where("a.org_id = ?", uuidOf(o.id)).Where("a.id = ?", uuidOf(app.ID)).For("NO KEY UPDATE").Scan(ctx)
		if err != nil {
			return fmt.Errorf("store: lock application: %w", err)
		}
		if len(rows) == 0 {
			return fault.New(fault.PathNotFound)
		}
		if len(version) > 0 && rows[0].noun().Version() != version[0] {
			return fault.New(fault.RevisionConflict)
		}
		_, err = pg.ExecSQL(ctx, tx.conn, "update application", `UPDATE applications SET name = $3, deployment_url = nullif($4, '') WHERE org_id = $1 AND id = $2`,
			o.id, app.ID, app.Name, app.DeploymentURL)
		if err != nil {
			return err
		}
		return o.auditActive(ctx, tx, audit.Action{
			AppID: app.ID, Action: "application.update", Target: app.ID.Format(ids.Application),
			Before: audit.Fields{"name": rows[0].Name, "deployment URL": rows[0].DeploymentURL},
			After:  audit.Fields{"name": app.Name, "deployment URL": app.DeploymentURL},
		})
	})
}

// Rename gives the organization another name. With a version, a name that isn't of this
// version is a conflict.
func (o Org) Rename(ctx context.Context, name string, version ...string) error {
	return o.handles.control(ctx, func(ctx context.Context, tx peopleTx) error {
		row, err := o.lock(ctx, tx)
		if err != nil {
			return err
		}
		if len(version) > 0 && row.noun().Version() != version[0] {
			return fault.New(fault.RevisionConflict)
		}
		if _, err := tx.NewUpdate().Model(&row).Set("name = ?", name).Where("o.id = ?", uuidOf(o.id)).Exec(ctx); err != nil {
			return fmt.Errorf("store: rename organization: %w", err)
		}
		return o.auditActive(ctx, tx, audit.Action{
			Action: "organization.rename", Target: o.id.Format(ids.Organization),
			Before: audit.Fields{"name": row.Name}, After: audit.Fields{"name": name},
		})
	})
}

// RequireFactor sets whether members may act in the organization only with an
// authenticator.
func (o Org) RequireFactor(ctx context.Context, required bool) error {
	return o.handles.control(ctx, func(ctx context.Context, tx peopleTx) error {
		row, err := o.lock(ctx, tx)
		if err != nil {
			return err
		}
		if row.RequiresFactor == required {
			return nil
		}
		if _, err := tx.NewUpdate().Model(&row).Set("requires_factor = ?", required).Where("o.id = ?", uuidOf(o.id)).Exec(ctx); err != nil {
			return fmt.Errorf("store: require factor: %w", err)
		}
		return o.auditArchived(ctx, tx, audit.Action{
			Action: "organization.second-factor", Target: o.id.Format(ids.Organization),
			Before: audit.Fields{"required": strconv.FormatBool(!required)}, After: audit.Fields{"required": strconv.FormatBool(required)},
		})
	})
}

// lock locks the organization's row. A stronger lock would conflict with inserts into
// the audit log, which reference the organization, and could deadlock with them.
func (o Org) lock(ctx context.Context, tx peopleTx) (row organizationRow, err error) {
	var rows []organizationRow
	if err := tx.NewSelect().Model(&rows).Where("o.id = ?", uuidOf(o.id)).For("NO KEY UPDATE").Scan(ctx); err != nil {
		return row, fmt.Errorf("store: lock organization: %w", err)
	}
	if len(rows) == 0 {
		return row, fault.New(fault.PathNotFound)
	}
	return rows[0], nil
}

func applicationCreated(app tenancy.Application) audit.Action {
	mode := "test"
	if app.Live {
		mode = "live"
	}
	return audit.Action{
		AppID: app.ID, Action: "application.create", Target: app.ID.Format(ids.Application),
		After: audit.Fields{"name": app.Name, "mode": mode},
	}
}

// Org reads and writes the rows of one organization.
type Org struct {
	handles *Handles
	id      ids.ID
	by      audit.Actor
}
