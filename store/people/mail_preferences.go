package people

import (
	"context"

	"github.com/jackc/pgx/v5"

	"purser/fault"
	"purser/ids"
	"purser/store/internal/pg"
	"purser/tenancy"
)

// MailMember is a member with the address and the choices for mails.
type MailMember struct {
	tenancy.Member
	Email  string
	Chosen tenancy.MailPreferences
}

// maxMailRoster is how many members of an organization get mails at most.
const maxMailRoster = 500

// selectMailMembers is followed by the condition on members m.
const selectMailMembers = `
		SELECT m.user_id, m.role, m.permissions, u.email, coalesce(m.mail_alerts, ''), coalesce(m.mail_webhooks, ''), coalesce(m.mail_keys, '')
		FROM members m JOIN users u ON u.id = m.user_id
		WHERE m.org_id = $1 `

// MailRoster lists the members with what they want to be mailed about, the first to join
// first.
func (o Org) MailRoster(ctx context.Context) ([]MailMember, error) {
	return pg.CollectSQL(ctx, o.handles.pool, "mail roster", o.readMailMember, selectMailMembers+`ORDER BY m.created_at, m.user_id LIMIT $2`, o.id, maxMailRoster)
}

// MailMember is one member as in the roster. A user who is no member is a 404.
func (o Org) MailMember(ctx context.Context, user ids.ID) (MailMember, error) {
	return pg.FindSQL(ctx, o.handles.pool, "mail member", o.readMailMember, selectMailMembers+`AND m.user_id = $2`, o.id, user)
}

func (o Org) readMailMember(row pgx.CollectableRow) (m MailMember, err error) {
	var permissions []string
	var chosen [3]tenancy.MailScope
	err = row.Scan(&m.UserID, &m.Role, &permissions, &m.Email, &chosen[0], &chosen[1], &chosen[2])
	m.OrgID, m.Custom, m.Chosen = o.id, tenancy.StoredPermissions(permissions), mailPreferences(chosen)
	return m, err
}

// mailPreferences are stored choices, in the order of the topics.
func mailPreferences(scopes [3]tenancy.MailScope) tenancy.MailPreferences {
	chosen := tenancy.MailPreferences{}
	for i, topic := range tenancy.MailTopics() {
		if scopes[i] != "" {
			chosen[topic] = scopes[i]
		}
	}
	return chosen
}

// Membership is an organization of a user, with their choices for mails.
type Membership struct {
	Organization tenancy.Organization
	Member       tenancy.Member
	Chosen       tenancy.MailPreferences
}

// Memberships lists the organizations of the user, by name.
func (p User) Memberships(ctx context.Context) ([]Membership, error) {
	read := func(row pgx.CollectableRow) (m Membership, err error) {
		var permissions []string
		var chosen [3]tenancy.MailScope
		err = row.Scan(&m.Organization.ID, &m.Organization.Slug, &m.Organization.Name, &m.Member.Role, &permissions, &chosen[0], &chosen[1], &chosen[2])
		m.Member.OrgID, m.Member.UserID = m.Organization.ID, p.id
		m.Member.Custom, m.Chosen = tenancy.StoredPermissions(permissions), mailPreferences(chosen)
		return m, err
	}
	return pg.CollectSQL(ctx, p.handles.pool, "memberships", read, `
		SELECT o.id, o.slug, o.name, m.role, m.permissions, coalesce(m.mail_alerts, ''), coalesce(m.mail_webhooks, ''), coalesce(m.mail_keys, '')
		FROM members m JOIN organizations o ON o.id = m.org_id
		WHERE m.user_id = $1 ORDER BY o.name, o.id`, p.id)
}

// ChooseMails stores what the user wants to be mailed about in an organization.
func (p User) ChooseMails(ctx context.Context, org ids.ID, chosen tenancy.MailPreferences) error {
	chose, err := pg.ExecSQL(ctx, p.handles.pool, "choose mails", `
		UPDATE members SET mail_alerts = nullif($3, ''), mail_webhooks = nullif($4, ''), mail_keys = nullif($5, '') WHERE org_id = $1 AND user_id = $2`,
		org, p.id, string(chosen[tenancy.MailAlerts]), string(chosen[tenancy.MailWebhooks]), string(chosen[tenancy.MailKeys]))
	if err == nil && chose == 0 {
		err = fault.New(fault.PathNotFound)
	}
	return err
}
