package people

import (
	"context"
	"errors"
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

// Operator commands for users who are locked out. Each is in the audit log of every
// organization that it touches.

// noToken belongs to no session, so no session is spared.
const noToken = ""

// ResetLasts is how long a password from the command line is valid.
const ResetLasts = 24 * time.Hour

// Reset is a temporary password for a user who cannot sign in.
type Reset struct {
	Email         string
	Encoded       string // the hash of the password
	RemovesFactor bool   // the authenticator is lost as well
	By            audit.Actor
}

// ResetPassword sets a password that the user has to replace within a day, ends all
// sessions and deletes the counted attempts at the previous one.
func (e Auth) ResetPassword(ctx context.Context, r Reset) error {
	return e.handles.inUserTx(ctx, func(ctx context.Context, tx pgx.Tx) error {
		user, err := lockAccount(ctx, tx, r.Email)
		if err != nil {
			return err
		}
		if err := putPassword(ctx, tx, user, r.Encoded, r.By.At, r.By.At+ResetLasts.Milliseconds()); err != nil {
			return err
		}
		fields := audit.Fields{"password": "replaced"}
		if r.RemovesFactor {
			fields["authenticator"] = "removed"
			if err := e.handles.User(user).removeFactor(ctx, tx); err != nil {
				return err
			}
		}
		if err := endSessions(ctx, tx, user, noToken); err != nil {
			return err
		}
		// Attempts are counted for each password.
		code := credential.CodeSubject(user.Format(ids.User), "")
		if _, err := pg.ExecSQL(ctx, tx, "forget attempts", `DELETE FROM login_failures WHERE subject = $1`, code[:]); err != nil {
			return err
		}
		return auditAllOrganizations(ctx, tx, user, r.By, audit.Action{Action: "member.reset", Target: user.Format(ids.User), After: fields})
	})
}

// lockAccount finds and locks a user by email address, so that concurrent resets run
// one after the other.
func lockAccount(ctx context.Context, tx pgx.Tx, email string) (user ids.ID, err error) {
	err = tx.QueryRow(ctx, `SELECT id FROM users WHERE email = $1 FOR NO KEY UPDATE`, email).Scan(&user)
	if errors.Is(err, pgx.ErrNoRows) {
		return user, fault.Newf(fault.PathNotFound, "There is no account with the address %s.", email)
	}
	if err != nil {
		return user, fmt.Errorf("store: lock account: %w", err)
	}
	return user, nil
}

// auditAllOrganizations writes the action into the log of each of the user's
// organizations, and waits for none of several: inUserTx does that and starts over. In its
// last turn, it waits for them in one order, so that two of them cannot deadlock.
func auditAllOrganizations(ctx context.Context, tx pgx.Tx, user ids.ID, by audit.Actor, d audit.Action) error {
	orgs, err := pg.CollectSQL(ctx, tx, "organizations of a user", pgx.RowTo[ids.ID], `SELECT org_id FROM members WHERE user_id = $1 ORDER BY org_id`, user)
	if err != nil {
		return err
	}
	if len(orgs) > 1 && ctx.Value(lastTurn{}) == nil {
		if err := pg.TryAuditHeads(ctx, tx.Conn(), orgs); err != nil {
			return err
		}
	}
	for _, org := range orgs {
		if err := pg.AppendAudit(ctx, tx.Conn(), org, by, d); err != nil {
			return err
		}
	}
	return nil
}

// MakeOwner makes the user with the address an owner of the organization, whether they
// were a member or not, and ends their sessions. An organization created by the command
// line after the setup gets its first owner this way. An owner stays one, and made is
// false.
func (e Auth) MakeOwner(ctx context.Context, ref OrgRef, email string, by audit.Actor) (bool, error) {
	return pg.Return(ctx, e.handles.inUserTx, func(ctx context.Context, tx pgx.Tx) (made bool, err error) {
		user, err := lockAccount(ctx, tx, email)
		if err != nil {
			return made, err
		}
		org, err := ref.find(ctx, tx.Conn())
		if err != nil {
			return made, err
		}
		var was audit.Fields
		var role string
		err = tx.QueryRow(ctx, `SELECT role FROM members WHERE org_id = $1 AND user_id = $2 FOR UPDATE`, org, user).Scan(&role)
		switch {
		case err == nil && role == string(tenancy.Owner):
			return made, nil
		case err == nil:
			was = audit.Fields{"role": role}
		case !errors.Is(err, pgx.ErrNoRows):
			return made, fmt.Errorf("store: lock member: %w", err)
		}
		_, err = pg.ExecSQL(ctx, tx, "put owner", `
			INSERT INTO members (org_id, user_id, role, permissions, created_at) VALUES ($1, $2, $3, '{}', $4)
			ON CONFLICT (org_id, user_id) DO UPDATE SET role = excluded.role, permissions = excluded.permissions`,
			org, user, string(tenancy.Owner), by.At)
		if err != nil {
			return made, err
		}
		if err := endSessions(ctx, tx, user, noToken); err != nil {
			return made, err
		}
		return true, pg.AppendAudit(ctx, tx.Conn(), org, by, audit.Action{
			Action: "member.own", Target: user.Format(ids.User), Before: was, After: audit.Fields{"role": string(tenancy.Owner), "address": email},
		})
	})
}
