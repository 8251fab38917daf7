package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/uptrace/bun"

	"purser/fault"
	"purser/ids"
	"purser/tenancy"
	"purser/tenancy/audit"
)

// Members lists the organization's people, the first to join first.
func (o Org) Members(ctx context.Context) (list []tenancy.Member, err error) {
	return o.members(ctx, o.store.bun, "")
}

// ChangeMember gives a member another access, if whoever acts may do that.
func (o Org) ChangeMember(ctx context.Context, user ids.ID, given tenancy.Access) error {
	return o.onMember(ctx, user, func(ctx context.Context, tx bun.Tx, held heldMembers) error {
		if err := held.by.CheckChange(held.target, given, held.owners); err != nil {
			return err
		}
		next := held.target
		next.Access = given
		row := rowOfMember(next)
		_, err := tx.NewUpdate().Model(&row).Column("role", "permissions").
			Where("m.org_id = ?", uuidOf(o.id)).Where("m.user_id = ?", uuidOf(user)).Exec(ctx)
		if err != nil {
			return fmt.Errorf("store: update member: %w", err)
		}
		if err := o.endTrust(ctx, tx, user); err != nil {
			return err
		}
		return o.audit(ctx, tx, audit.Action{
			Action: "member.change", Target: user.Format(ids.User),
			Before: accessFacts(held.target.Access, nil), After: accessFacts(given, nil),
		})
	})
}

// RemoveMember takes a member out, if whoever acts may do that. Who acts on
// themselves leaves.
func (o Org) RemoveMember(ctx context.Context, user ids.ID) error {
	return o.onMember(ctx, user, func(ctx context.Context, tx bun.Tx, held heldMembers) error {
		if err := held.by.CheckRemove(held.target, held.owners); err != nil {
			return err
		}
		_, err := tx.NewDelete().Model((*memberRow)(nil)).
			Where("m.org_id = ?", uuidOf(o.id)).Where("m.user_id = ?", uuidOf(user)).Exec(ctx)
		if err != nil {
			return fmt.Errorf("store: delete member: %w", err)
		}
		if err := o.endTrust(ctx, tx, user); err != nil {
			return err
		}
		return o.audit(ctx, tx, audit.Action{
			Action: "member.remove", Target: user.Format(ids.User), Before: accessFacts(held.target.Access, nil),
		})
	})
}

// endTrust ends what a person was let in with before their access changed: their
// sessions, except when they changed it themselves, and the invitations that they
// could send.
func (o Org) endTrust(ctx context.Context, tx bun.Tx, user ids.ID) error {
	if o.by.UserID != user {
		if _, err := tx.Tx.ExecContext(ctx, `DELETE FROM sessions WHERE user_id = $1`, uuidOf(user)); err != nil {
			return fmt.Errorf("store: end sessions: %w", err)
		}
	}
	_, err := tx.Tx.ExecContext(ctx, `
		UPDATE invitations SET closed_at = $3 WHERE org_id = $1 AND invited_by = $2 AND closed_at IS NULL`,
		uuidOf(o.id), uuidOf(user), o.by.At)
	if err != nil {
		return fmt.Errorf("store: close invitations: %w", err)
	}
	return nil
}

// accessFacts tells what an access opens, beside other facts.
func accessFacts(a tenancy.Access, facts audit.Fields) audit.Fields {
	told := audit.Fields{"role": string(a.Role)}
	if a.Role == tenancy.Custom {
		told["permissions"] = a.Custom.String()
	}
	for name, fact := range facts {
		told[name] = fact
	}
	return told
}

// MemberProfile is a member and the account behind it.
type MemberProfile struct {
	tenancy.Member
	Name      string
	Email     string
	HasFactor bool
	SeenAt    int64  // in a session that is open; zero when there is none
	InvitedAs string // whom the invitation was for, in the inviter's words
}

// Roster lists the organization's people with their names, the first to join first.
func (o Org) Roster(ctx context.Context) ([]MemberProfile, error) {
	rows, err := o.store.pool.Query(ctx, `
		SELECT m.user_id, m.role, m.permissions, m.created_at, u.name, u.email,
			EXISTS (SELECT FROM second_factors f WHERE f.user_id = m.user_id),
			coalesce((SELECT max(s.seen_at) FROM sessions s WHERE s.user_id = m.user_id), 0),
			coalesce((SELECT i.note FROM invitations i WHERE i.org_id = $1 AND i.accepted_by = m.user_id ORDER BY i.closed_at DESC LIMIT 1), '')
		FROM members m JOIN users u ON u.id = m.user_id
		WHERE m.org_id = $1 ORDER BY m.created_at, m.user_id`, o.id)
	if err != nil {
		return nil, fmt.Errorf("store: roster: %w", err)
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (MemberProfile, error) {
		m := MemberProfile{Member: tenancy.Member{OrgID: o.id}}
		var permissions []string
		err := row.Scan(&m.UserID, &m.Role, &permissions, &m.CreatedAt, &m.Name, &m.Email, &m.HasFactor, &m.SeenAt, &m.InvitedAs)
		m.Custom = tenancy.StoredPermissions(permissions)
		return m, err
	})
	if err != nil {
		return nil, fmt.Errorf("store: roster: %w", err)
	}
	return list, nil
}

// heldMembers are the people of one act, as they stand while nobody else changes
// any member of the organization.
type heldMembers struct {
	by     tenancy.Member // whoever acts
	target tenancy.Member
	owners int
}

// onMember holds every member of the organization still, so that the owners that it
// counts are the owners there will be, and whoever acts still has the role that they
// act by. Somebody who is no member any more finds nobody.
func (o Org) onMember(ctx context.Context, user ids.ID, act func(context.Context, bun.Tx, heldMembers) error) error {
	return o.store.control(ctx, func(ctx context.Context, tx bun.Tx) error {
		all, err := o.members(ctx, tx, "UPDATE")
		if err != nil {
			return err
		}
		var held heldMembers
		for _, m := range all {
			if m.Role == tenancy.Owner {
				held.owners++
			}
			if m.UserID == o.by.UserID {
				held.by = m
			}
			if m.UserID == user {
				held.target = m
			}
		}
		if held.by.UserID.IsZero() || held.target.UserID.IsZero() {
			return fault.New(fault.PathNotFound)
		}
		return act(ctx, tx, held)
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
