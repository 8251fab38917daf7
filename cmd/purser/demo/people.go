package demo

import (
	"context"
	"crypto/rand"
	"strings"
	"time"

	"purser/ids"
	"purser/store"
	"purser/tenancy"
	"purser/tenancy/audit"
	"purser/tenancy/credential"
)

// Person is somebody to sign in as.
type Person struct {
	Name, Email string
	Role        tenancy.Role
	custom      []tenancy.Permission
}

// people are one of each role. The first founds the organization, and the last
// joins when the demo is whole.
var people = []Person{
	{Name: "Nora Lind", Email: "owner@lumen.example", Role: tenancy.Owner},
	{Name: "Adam Okafor", Email: "admin@lumen.example", Role: tenancy.Admin},
	{Name: "Dana Petrov", Email: "developer@lumen.example", Role: tenancy.Developer},
	{Name: "Mina Castro", Email: "finance@lumen.example", Role: tenancy.Custom, custom: []tenancy.Permission{
		tenancy.WalletsRead, tenancy.DepositsRead, tenancy.PlansRead, tenancy.SubscriptionsRead, tenancy.JournalRead, tenancy.AuditRead,
	}},
	{Name: "Sam Tanaka", Email: "support@lumen.example", Role: tenancy.Support},
}

// invitationLasts is as long as the dashboard's.
const invitationLasts = 7 * 24 * time.Hour

// open founds the organization, which nobody else has done.
func (o Options) open(ctx context.Context) (*tale, error) {
	t := &tale{Options: o, password: strings.ToLower(rand.Text()), staff: map[tenancy.Role]tenancy.User{}}
	var err error
	if t.encoded, err = credential.HashPassword(t.password, rand.Reader); err != nil {
		return nil, err
	}
	link, err := credential.NewLink(rand.Reader)
	if err != nil {
		return nil, err
	}
	now := o.Now()
	offered, err := o.Store.Auth().OfferSetup(ctx, link.Hash(), now)
	if err != nil {
		return nil, err
	}
	if !offered {
		return nil, errNotEmpty
	}
	founder, err := newUser(people[0], now)
	if err != nil {
		return nil, err
	}
	t.staff[tenancy.Owner] = founder
	if t.org, err = tenancy.NewOrganization(ids.New(), organizationName, now); err != nil {
		return nil, err
	}
	if t.app, err = tenancy.NewApplication(ids.New(), t.org, applicationName, false, now); err != nil {
		return nil, err
	}
	founded, err := o.Store.Auth().CreateFirstAccount(ctx, link.Hash(), store.Bootstrap{
		User: founder, Encoded: t.encoded, Org: t.org, App: t.app, By: t.actor(tenancy.Owner),
	})
	t.org, t.app = founded.Org, founded.App
	return t, err
}

func newUser(p Person, now int64) (tenancy.User, error) {
	return tenancy.NewUser(ids.New(), p.Email, p.Name, now)
}

// actor is a member at work, as the audit log knows them.
func (t *tale) actor(r tenancy.Role) audit.Actor {
	u := t.staff[r]
	return audit.Actor{UserID: u.ID, Name: u.Email, Address: "127.0.0.1", RequestID: ids.New(), At: t.Now()}
}

// hire brings in everybody but the last, and leaves an invitation open.
func (t *tale) hire(ctx context.Context) error {
	for _, p := range people[1 : len(people)-1] {
		if err := t.join(ctx, p); err != nil {
			return err
		}
	}
	_, err := t.invite(ctx, Person{Name: "Kai Berg, second line", Role: tenancy.Support})
	return err
}

func (t *tale) hireLast(ctx context.Context) error {
	return t.join(ctx, people[len(people)-1])
}

func (t *tale) join(ctx context.Context, p Person) error {
	link, err := t.invite(ctx, p)
	if err != nil {
		return err
	}
	user, err := newUser(p, t.Now())
	if err != nil {
		return err
	}
	t.staff[p.Role] = user
	_, err = t.Store.Auth().AcceptInvitation(ctx, link.Hash(), store.Acceptance{User: user, Encoded: t.encoded, By: t.actor(p.Role)})
	return err
}

func (t *tale) invite(ctx context.Context, p Person) (credential.Token, error) {
	link, err := credential.NewLink(rand.Reader)
	if err != nil {
		return "", err
	}
	now := t.Now()
	return link, t.Store.Org(t.org.ID).By(t.actor(tenancy.Owner)).Invite(ctx, store.Invitation{
		ID: ids.New(), OrgID: t.org.ID, Note: p.Name, InvitedBy: t.staff[tenancy.Owner].ID,
		Access:    tenancy.Access{Role: p.Role, Custom: tenancy.PermissionsOf(p.custom...)},
		CreatedAt: now, ExpiresAt: now + invitationLasts.Milliseconds(),
	}, link.Hash())
}
