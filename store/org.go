package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/uptrace/bun"

	"purser/fault"
	"purser/ids"
	"purser/tenancy"
)

// Organization reads the organization itself.
func (o Org) Organization(ctx context.Context) (tenancy.Organization, error) {
	var rows []organizationRow
	if err := o.store.bun.NewSelect().Model(&rows).Where("o.id = ?", uuidOf(o.id)).Scan(ctx); err != nil {
		return tenancy.Organization{}, fmt.Errorf("store: select organization: %w", err)
	}
	if len(rows) == 0 {
		return tenancy.Organization{}, fault.New(fault.PathNotFound)
	}
	return rows[0].noun(), nil
}

// CreateApplication keeps a new application of the organization, under a free
// spelling of its slug.
func (o Org) CreateApplication(ctx context.Context, app tenancy.Application) (tenancy.Application, error) {
	if app.OrgID != o.id {
		return app, fault.New(fault.PathNotFound)
	}
	err := o.store.control(ctx, func(ctx context.Context, tx bun.Tx) (err error) {
		app, err = insertApplication(ctx, tx, app)
		return err
	})
	return app, err
}

// Application reads one application of the organization.
func (o Org) Application(ctx context.Context, id ids.ID) (tenancy.Application, error) {
	var rows []applicationRow
	err := o.store.bun.NewSelect().Model(&rows).
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
	err = o.store.bun.NewSelect().Model(&rows).
		Where("a.org_id = ?", uuidOf(o.id)).OrderExpr("a.name, a.id").Scan(ctx)
	if err != nil {
		return nil, fmt.Errorf("store: list applications: %w", err)
	}
	for _, row := range rows {
		list = append(list, row.noun())
	}
	return list, nil
}

// UpdateApplication writes the name and the address of an application.
func (o Org) UpdateApplication(ctx context.Context, app tenancy.Application) error {
	row := rowOfApplication(app)
	result, err := o.store.bun.NewUpdate().Model(&row).
		Column("name", "deployment_url").
		Where("a.org_id = ?", uuidOf(o.id)).Where("a.id = ?", row.ID).
		Exec(ctx)
	if err != nil {
		return fmt.Errorf("store: update application: %w", err)
	}
	if changed, err := result.RowsAffected(); err != nil || changed == 0 {
		return errors.Join(err, fault.New(fault.PathNotFound))
	}
	return nil
}

// Members lists the organization's people, the first to join first.
func (o Org) Members(ctx context.Context) (list []tenancy.Member, err error) {
	return o.members(ctx, o.store.bun, "")
}

// AddMember lets a person in, unless they are in already.
func (o Org) AddMember(ctx context.Context, m tenancy.Member) error {
	if m.OrgID != o.id {
		return fault.New(fault.PathNotFound)
	}
	row := rowOfMember(m)
	result, err := o.store.bun.NewInsert().Model(&row).On("CONFLICT (org_id, user_id) DO NOTHING").Exec(ctx)
	if err != nil {
		return fmt.Errorf("store: insert member: %w", err)
	}
	if made, err := result.RowsAffected(); err != nil || made == 0 {
		return errors.Join(err, fault.Newf(fault.AlreadyExists, "This person is a member already."))
	}
	return nil
}

// ChangeMember gives a member another access. The rule sees the member and the
// number of owners as they stand under a lock.
func (o Org) ChangeMember(ctx context.Context, user ids.ID, rule func(target tenancy.Member, owners int) (tenancy.Member, error)) error {
	return o.withMember(ctx, user, func(ctx context.Context, tx bun.Tx, target tenancy.Member, owners int) error {
		next, err := rule(target, owners)
		if err != nil {
			return err
		}
		row := rowOfMember(next)
		_, err = tx.NewUpdate().Model(&row).Column("role", "permissions").
			Where("m.org_id = ?", uuidOf(o.id)).Where("m.user_id = ?", uuidOf(user)).Exec(ctx)
		if err != nil {
			return fmt.Errorf("store: update member: %w", err)
		}
		return nil
	})
}

// RemoveMember takes a member out. The rule sees what ChangeMember's does.
func (o Org) RemoveMember(ctx context.Context, user ids.ID, rule func(target tenancy.Member, owners int) error) error {
	return o.withMember(ctx, user, func(ctx context.Context, tx bun.Tx, target tenancy.Member, owners int) error {
		if err := rule(target, owners); err != nil {
			return err
		}
		_, err := tx.NewDelete().Model((*memberRow)(nil)).
			Where("m.org_id = ?", uuidOf(o.id)).Where("m.user_id = ?", uuidOf(user)).Exec(ctx)
		if err != nil {
			return fmt.Errorf("store: delete member: %w", err)
		}
		return nil
	})
}

// withMember holds every member of the organization still, so that the owners
// that it counts are the owners there will be.
func (o Org) withMember(ctx context.Context, user ids.ID, work func(context.Context, bun.Tx, tenancy.Member, int) error) error {
	return o.store.control(ctx, func(ctx context.Context, tx bun.Tx) error {
		all, err := o.members(ctx, tx, "UPDATE")
		if err != nil {
			return err
		}
		var target *tenancy.Member
		owners := 0
		for _, m := range all {
			if m.Role == tenancy.Owner {
				owners++
			}
			if m.UserID == user {
				target = &m
			}
		}
		if target == nil {
			return fault.New(fault.PathNotFound)
		}
		return work(ctx, tx, *target, owners)
	})
}

func (o Org) members(ctx context.Context, db bun.IDB, lock string) (list []tenancy.Member, err error) {
	var rows []memberRow
	query := db.NewSelect().Model(&rows).Where("m.org_id = ?", uuidOf(o.id)).OrderExpr("m.created_at, m.user_id")
	if lock != "" {
		query = query.For(lock)
	}
	if err := query.Scan(ctx); err != nil {
		return nil, fmt.Errorf("store: list members: %w", err)
	}
	for _, row := range rows {
		list = append(list, row.noun())
	}
	return list, nil
}
