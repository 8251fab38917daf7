package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"purser/fault"
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

// CreateOrganization keeps a new organization, under a free spelling of its slug.
func (d Directory) CreateOrganization(ctx context.Context, o tenancy.Organization) (tenancy.Organization, error) {
	err := d.store.control(ctx, func(ctx context.Context, tx peopleTx) (err error) {
		o, err = insertOrganization(ctx, tx, o, "")
		return err
	})
	return o, err
}

type userRow struct {
	bun.BaseModel `bun:"table:users,alias:u"`

	ID        uuid.UUID `bun:"id,pk,type:uuid"`
	Email     string    `bun:"email"`
	Name      string    `bun:"name"`
	CreatedAt int64     `bun:"created_at"`
}

// CreateUser keeps a new person, unless the address is taken.
func (d Directory) CreateUser(ctx context.Context, u tenancy.User) error {
	return d.store.control(ctx, func(ctx context.Context, tx peopleTx) error {
		row := userRow{ID: uuidOf(u.ID), Email: u.Email, Name: u.Name, CreatedAt: u.CreatedAt}
		result, err := tx.NewInsert().Model(&row).On("CONFLICT (email) DO NOTHING").Exec(ctx)
		if err != nil {
			return fmt.Errorf("store: insert user: %w", err)
		}
		if made, err := result.RowsAffected(); err != nil || made == 0 {
			return errors.Join(err, fault.Newf(fault.AlreadyExists, "An account with this email already exists."))
		}
		return nil
	})
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

// Password reads the hash of the person's password.
func (p User) Password(ctx context.Context) (encoded string, err error) {
	err = p.store.db.Pool.QueryRow(ctx, `SELECT encoded FROM passwords WHERE user_id = $1`, p.id).Scan(&encoded)
	return encoded, err
}
