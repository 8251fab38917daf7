package people

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"purser/fault"
	"purser/ids"
	"purser/store/internal/pg"
	"purser/tenancy"
	"purser/tenancy/audit"
	"purser/tenancy/credential"
)

// Invitation makes the first person who opens its link a member.
type Invitation struct {
	ID    ids.ID
	OrgID ids.ID
	Note  string // whom it is for, in the inviter's words
	Email string // where it is mailed to; empty for a link that is passed on by hand
	tenancy.Access
	InvitedBy ids.ID
	CreatedAt int64
	ExpiresAt int64
}

// Invite keeps an invitation, unless there is one with its id: the form was sent twice.
// Its link is not part of it. What the inviter may give
// is checked here, under a lock: otherwise a member whose access is being revoked could
// still invite someone.
func (o Org) Invite(ctx context.Context, i Invitation, link credential.Hash, mails ...Mail) error {
	if i.OrgID != o.id {
		return fault.New(fault.PathNotFound)
	}
	return o.handles.inUserTx(ctx, func(ctx context.Context, tx pgx.Tx) error {
		if i.Email != "" {
			if err := lockUser(ctx, tx, i.InvitedBy); err != nil {
				return err
			}
		}
		by, err := o.holdMember(ctx, tx, i.InvitedBy)
		if err != nil {
			return err
		}
		if err := by.CheckInvite(i.Access); err != nil {
			return err
		}
		if err := o.checkInvitations(ctx, tx, i); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `
			INSERT INTO invitations (id, org_id, hash, note, role, permissions, invited_by, created_at, expires_at, email)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, nullif($10, ''))`,
			i.ID, o.id, link[:], i.Note, string(i.Role), i.Custom.Names(), i.InvitedBy, i.CreatedAt, i.ExpiresAt, i.Email)
		if pg.SQLState(err) == pg.UniqueViolation {
			return fault.Newf(fault.AlreadyExists, "This invitation already exists.")
		}
		if err != nil {
			return fmt.Errorf("store: insert invitation: %w", err)
		}
		if err := pg.QueueMail(ctx, tx.Conn(), mails...); err != nil {
			return err
		}
		if o.by.IsZero() {
			return nil
		}
		return pg.AppendActive(ctx, tx.Conn(), o.id, o.by, audit.Action{
			Action: "invitation.create", Target: i.ID.Format(ids.Invitation),
			After: accessFields(i.Access, audit.Fields{"for": i.Note}),
		})
	})
}

// MaxOpenInvitations is how many invitations of an organization can be accepted.
const MaxOpenInvitations = 200

// MaxMailedInvitations is how many invitations an organization mails in a day, and how
// many a member does in all organizations: the addresses are any, and their owners did
// not ask for mail.
const MaxMailedInvitations = 50

// checkInvitations refuses an invitation past the limits. It locks the organization, so
// that two at once can't both be the last one. The inviter of a mail is locked already.
func (o Org) checkInvitations(ctx context.Context, tx pgx.Tx, i Invitation) error {
	if _, err := pg.ExecSQL(ctx, tx, "lock organization", `SELECT FROM organizations WHERE id = $1 FOR NO KEY UPDATE`, o.id); err != nil {
		return err
	}
	var open, mailed, byInviter int
	dayAgo := i.CreatedAt - (24 * time.Hour).Milliseconds()
	// Ids begin with their time, so those of the last day are a range.
	err := tx.QueryRow(ctx, `
		SELECT (SELECT count(*) FROM invitations WHERE org_id = $1 AND closed_at IS NULL AND expires_at > $2),
			(SELECT count(*) FROM invitations WHERE org_id = $1 AND created_at > $3 AND email IS NOT NULL),
			(SELECT count(*) FROM invitations WHERE id >= $4 AND invited_by = $5 AND created_at > $3 AND email IS NOT NULL)`,
		o.id, i.CreatedAt, dayAgo, pg.IDAt(dayAgo-time.Hour.Milliseconds()), i.InvitedBy).Scan(&open, &mailed, &byInviter)
	if err != nil {
		return fmt.Errorf("store: count invitations: %w", err)
	}
	if open >= MaxOpenInvitations {
		return fault.Newf(fault.InvalidRequest, "Your organization has %d open invitations, the maximum. Revoke one first.", open)
	}
	if i.Email != "" && mailed >= MaxMailedInvitations {
		return fault.Newf(fault.InvalidRequest, "Your organization mailed %d invitations in the last 24 hours. Leave the email empty and send the link yourself.", MaxMailedInvitations)
	}
	if i.Email != "" && byInviter >= MaxMailedInvitations {
		return fault.Newf(fault.InvalidRequest, "You mailed %d invitations in the last 24 hours. Leave the email empty and send the link yourself.", MaxMailedInvitations)
	}
	return nil
}

// holdMember reads a member who keeps their access until the transaction ends.
func (o Org) holdMember(ctx context.Context, tx pgx.Tx, user ids.ID) (tenancy.Member, error) {
	m := tenancy.Member{OrgID: o.id, UserID: user}
	var permissions []string
	err := tx.QueryRow(ctx, `
		SELECT m.role, m.permissions, m.created_at FROM members m WHERE m.org_id = $1 AND m.user_id = $2 FOR SHARE`,
		o.id, user).Scan(&m.Role, &permissions, &m.CreatedAt)
	if err != nil {
		return m, pg.FoundSQL("hold member", err)
	}
	m.Custom = tenancy.StoredPermissions(permissions)
	return m, nil
}

const invitationColumns = `i.id, i.org_id, i.note, coalesce(i.email, ''), i.role, i.permissions, i.invited_by, i.created_at, i.expires_at`

func readInvitation(row pgx.CollectableRow) (i Invitation, err error) {
	var permissions []string
	err = row.Scan(&i.ID, &i.OrgID, &i.Note, &i.Email, &i.Role, &permissions, &i.InvitedBy, &i.CreatedAt, &i.ExpiresAt)
	i.Custom = tenancy.StoredPermissions(permissions)
	return i, err
}

// Invitations lists those that can still be accepted, newest first.
func (o Org) Invitations(ctx context.Context, now int64) ([]Invitation, error) {
	return pg.CollectSQL(ctx, o.handles.pool, "list invitations", readInvitation, `
		SELECT `+invitationColumns+` FROM invitations i
		WHERE i.org_id = $1 AND i.closed_at IS NULL AND i.expires_at > $2 ORDER BY i.id DESC`, o.id, now)
}

// WithdrawInvitation closes an open invitation, if the actor could have sent it: an
// admin cannot withdraw the invitation of an owner.
func (o Org) WithdrawInvitation(ctx context.Context, id ids.ID, now int64) error {
	return o.handles.inUserTx(ctx, func(ctx context.Context, tx pgx.Tx) error {
		by, err := o.holdMember(ctx, tx, o.by.UserID)
		if err != nil {
			return err
		}
		open, err := pg.FindSQL(ctx, tx, "hold invitation", readInvitation, `
			SELECT `+invitationColumns+` FROM invitations i WHERE i.org_id = $1 AND i.id = $2 AND i.closed_at IS NULL FOR UPDATE`, o.id, id)
		if err != nil {
			return err
		}
		if err := by.CheckWithdraw(open.Access); err != nil {
			return err
		}
		if _, err := pg.ExecSQL(ctx, tx, "close invitation", `UPDATE invitations SET closed_at = $3 WHERE org_id = $1 AND id = $2`, o.id, id, now); err != nil {
			return err
		}
		return o.auditPeople(ctx, tx, audit.Action{
			Action: "invitation.withdraw", Target: id.Format(ids.Invitation),
			Before: accessFields(open.Access, audit.Fields{"for": open.Note}),
		})
	})
}

// Invitation finds an invitation that can be accepted, by its link, and the
// organization it leads to.
func (e Auth) Invitation(ctx context.Context, link credential.Hash, now int64) (i Invitation, org tenancy.Organization, err error) {
	i, err = pg.FindSQL(ctx, e.handles.pool, "invitation by link", readInvitation, `
		SELECT `+invitationColumns+` FROM invitations i WHERE i.hash = $1 AND i.closed_at IS NULL AND i.expires_at > $2`, link[:], now)
	if err != nil {
		return i, org, err
	}
	org, err = e.handles.Org(i.OrgID).Organization(ctx)
	return i, org, err
}

// Acceptance is who accepts an invitation.
type Acceptance struct {
	User    tenancy.User
	Encoded string // the hash of a new account's password; empty for an account that is there
	By      audit.Actor
}

// AcceptInvitation makes a user a member, once: of two concurrent calls one fails.
func (e Auth) AcceptInvitation(ctx context.Context, link credential.Hash, j Acceptance) (Invitation, error) {
	return pg.Return(ctx, e.handles.inUserTx, func(ctx context.Context, tx pgx.Tx) (i Invitation, err error) {
		if j.Encoded != "" {
			if err := insertAccount(ctx, tx.Conn(), j.User, j.Encoded); err != nil {
				return i, err
			}
		}
		if err := lockUser(ctx, tx, j.User.ID); err != nil {
			return i, err
		}
		i, err = pg.FindSQL(ctx, tx, "accept invitation", readInvitation, `
			UPDATE invitations i SET closed_at = $2, accepted_by = $3
			WHERE i.hash = $1 AND i.closed_at IS NULL AND i.expires_at > $2
			RETURNING `+invitationColumns, link[:], j.By.At, j.User.ID)
		if err != nil {
			return i, err
		}
		if err := checkMembers(ctx, tx, i.OrgID, j.User.ID); err != nil {
			return i, err
		}
		joined, err := pg.ExecSQL(ctx, tx, "insert member", `
			INSERT INTO members (org_id, user_id, role, permissions, created_at) VALUES ($1, $2, $3, $4, $5)
			ON CONFLICT (org_id, user_id) DO NOTHING`, i.OrgID, j.User.ID, string(i.Role), i.Custom.Names(), j.By.At)
		if err != nil {
			return i, err
		}
		if joined == 0 {
			return i, fault.Newf(fault.AlreadyExists, "You are already a member of this organization.")
		}
		return i, pg.AppendActive(ctx, tx.Conn(), i.OrgID, j.By, audit.Action{
			Action: "member.join", Target: j.User.ID.Format(ids.User),
			After: accessFields(i.Access, audit.Fields{"address": j.User.Email, "invitation": i.ID.Format(ids.Invitation)}),
		})
	})
}

const (
	// MaxMembers is how many members an organization has: pages list all of them.
	MaxMembers = 1_000
	// MaxMemberships is how many organizations a user is in. What users change of their
	// account is in the log of each, and holds all of these logs until it is committed.
	MaxMemberships = 200
)

// checkMembers refuses one more member past the limits. It locks the organization, so that
// two at once can't both be the last one. The user is locked already.
func checkMembers(ctx context.Context, tx pgx.Tx, org, user ids.ID) error {
	if _, err := tx.Exec(ctx, `SELECT FROM organizations WHERE id = $1 FOR NO KEY UPDATE`, org); err != nil {
		return fmt.Errorf("store: lock organization: %w", err)
	}
	var members, memberships int
	err := tx.QueryRow(ctx, `
		SELECT (SELECT count(*) FROM members WHERE org_id = $1 AND user_id <> $2), (SELECT count(*) FROM members WHERE user_id = $2 AND org_id <> $1)`,
		org, user).Scan(&members, &memberships)
	if err != nil {
		return fmt.Errorf("store: count members: %w", err)
	}
	if members >= MaxMembers {
		return fault.Newf(fault.InvalidRequest, "The organization has %d members, the maximum. Ask an owner or admin to remove one first.", members)
	}
	if memberships >= MaxMemberships {
		return fault.Newf(fault.InvalidRequest, "You are a member of %d organizations, the maximum. Leave one first.", memberships)
	}
	return nil
}
