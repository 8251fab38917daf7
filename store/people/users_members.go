package people

import (
	"context"
	"fmt"
	"maps"

	"github.com/jackc/pgx/v5"
	"github.com/uptrace/bun"

	"purser/fault"
	"purser/ids"
	"purser/store/internal/pg"
	"purser/tenancy"
	"purser/tenancy/audit"
)

// Members lists the organization's members, the first to join first.
func (o Org) Members(ctx context.Context) (list []tenancy.Member, err error) {
	return o.members(ctx, o.handles.bun, "")
}

// ChangeMember changes a member's access, if the acting member may do that. With a version,
// an access that isn't of this version is a conflict: a form that was opened earlier must
// not give back what was taken away meanwhile.
func (o Org) ChangeMember(ctx context.Context, user ids.ID, given tenancy.Access, version ...string) error {
	return o.withLockedMembers(ctx, user, func(ctx context.Context, tx peopleTx, held lockedMembers) error {
		if err := held.by.CheckChange(held.target, given, held.owners); err != nil {
			return err
		}
		if len(version) > 0 && held.target.Version() != version[0] {
			return fault.New(fault.RevisionConflict)
		}
		next := held.target
		next.Access = given
		row := rowOfMember(next)
		_, err := tx.NewUpdate().Model(&row).Column("role", "permissions").
			Where("m.org_id = ?", uuidOf(o.id)).Where("m.user_id = ?", uuidOf(user)).Exec(ctx)
		if err != nil {
			return fmt.Errorf("store: update member: %w", err)
		}
		if err := o.revokeAccess(ctx, tx, user); err != nil {
			return err
		}
		return o.audit(ctx, tx, audit.Action{
			Action: "member.change", Target: user.Format(ids.User),
			Before: accessFields(held.target.Access, nil), After: accessFields(given, nil),
		})
	})
}

// RemoveMember removes a member, if the acting member may do that. Members may remove
// themselves.
func (o Org) RemoveMember(ctx context.Context, user ids.ID) error {
	return o.withLockedMembers(ctx, user, func(ctx context.Context, tx peopleTx, held lockedMembers) error {
		if err := held.by.CheckRemove(held.target, held.owners); err != nil {
			return err
		}
		_, err := tx.NewDelete().Model((*memberRow)(nil)).
			Where("m.org_id = ?", uuidOf(o.id)).Where("m.user_id = ?", uuidOf(user)).Exec(ctx)
		if err != nil {
			return fmt.Errorf("store: delete member: %w", err)
		}
		if err := o.revokeAccess(ctx, tx, user); err != nil {
			return err
		}
		return o.audit(ctx, tx, audit.Action{
			Action: "member.remove", Target: user.Format(ids.User), Before: accessFields(held.target.Access, nil),
		})
	})
}

// revokeAccess ends a user's sessions, unless they changed their own access, and the
// invitations that they sent: both predate the change.
func (o Org) revokeAccess(ctx context.Context, tx peopleTx, user ids.ID) error {
	if o.by.UserID != user {
		if err := endSessions(ctx, tx.conn, user, noToken); err != nil {
			return err
		}
	}
	_, err := pg.ExecSQL(ctx, tx.conn, "close invitations", `
		UPDATE invitations SET closed_at = $3 WHERE org_id = $1 AND invited_by = $2 AND closed_at IS NULL`,
		uuidOf(o.id), uuidOf(user), o.by.At)
	return err
}

// accessFields adds an access to the fields of an audit row.
func accessFields(a tenancy.Access, facts audit.Fields) audit.Fields {
	fields := audit.Fields{"role": string(a.Role)}
	if a.Role == tenancy.Custom {
		fields["permissions"] = a.Custom.String()
	}
	maps.Copy(fields, facts)
	return fields
}

// MemberProfile is a member with their account.
type MemberProfile struct {
	tenancy.Member
	Name      string
	Email     string
	HasFactor bool
	SeenDay   int64  // the day of their newest session's last request, in any organization; zero for none
	InvitedAs string // whom the invitation was for, in the inviter's words
}

// Each member's newest invitation is found in one pass, not by a search for each.
const rosterQuery = `
	WITH invited AS MATERIALIZED (
		SELECT DISTINCT ON (accepted_by) accepted_by, note FROM invitations
		WHERE org_id = $1 AND accepted_by IS NOT NULL ORDER BY accepted_by, closed_at DESC
	)
	SELECT m.user_id, m.role, m.permissions, m.created_at, u.name, u.email,
		EXISTS (SELECT FROM second_factors f WHERE f.user_id = m.user_id),
		coalesce((SELECT max(s.seen_at) / 86400000 * 86400000 FROM sessions s WHERE s.user_id = m.user_id), 0),
		coalesce(i.note, '')
	FROM members m JOIN users u ON u.id = m.user_id LEFT JOIN invited i ON i.accepted_by = m.user_id
	WHERE m.org_id = $1 ORDER BY m.created_at, m.user_id`

// Roster lists the organization's members with their names, the first to join first.
func (o Org) Roster(ctx context.Context) ([]MemberProfile, error) {
	read := func(row pgx.CollectableRow) (MemberProfile, error) {
		m := MemberProfile{Member: tenancy.Member{OrgID: o.id}}
		var permissions []string
		err := row.Scan(&m.UserID, &m.Role, &permissions, &m.CreatedAt, &m.Name, &m.Email, &m.HasFactor, &m.SeenDay, &m.InvitedAs)
		m.Custom = tenancy.StoredPermissions(permissions)
		return m, err
	}
	return pg.CollectSQL(ctx, o.handles.pool, "roster", read, rosterQuery, o.id)
}

// lockedMembers are the members of one operation, while every member of the
// organization is locked.
type lockedMembers struct {
	by     tenancy.Member // the acting member
	target tenancy.Member
	owners int
}

// withLockedMembers locks every member of the organization, so that the count of owners
// cannot change and the acting member still has the role they act by. A user who is no
// longer a member gets not found.
func (o Org) withLockedMembers(ctx context.Context, user ids.ID, act func(context.Context, peopleTx, lockedMembers) error) error {
	return o.handles.control(ctx, func(ctx context.Context, tx peopleTx) error {
		all, err := o.members(ctx, tx, "UPDATE")
		if err != nil {
			return err
		}
		var held lockedMembers
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
