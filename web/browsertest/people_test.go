package browsertest

import (
	"fmt"
	"strings"
	"testing"

	"purser/tenancy"
	"purser/views/component"
	"purser/views/layout"
	accountpage "purser/views/page/account"
	orgpage "purser/views/page/org"
)

// peoplePages are those of people and organizations, with what they show at worst:
// hostile names, and forms that came back.
func peoplePages() map[string]view {
	place := layout.Place{Name: "Acme", Href: "/o/acme"}
	person := layout.Person{Name: "Ann Example", Email: "ann@example.com"}
	plain := layout.Frame{Title: "Account", Person: person, Orgs: []layout.Place{place, {Name: "<b>Bolt</b> & a very long name that goes on and on and on", Href: "/o/bolt"}}}
	org := layout.Frame{Title: "Acme", Person: person, Org: place, Orgs: plain.Orgs, Nav: layout.OrgNav("/o/acme", tenancy.AllPermissions())}
	in := func(current string) layout.Frame { f := org; f.Current = current; return f }
	refused := component.Draft{
		Values:   map[string]string{"name": "Ann", "email": "ann"},
		Problems: []component.Problem{{Field: "email", Message: "Enter an email address such as name@example.com."}, {Field: "password", Message: "The password is too short."}},
	}
	access := orgpage.AccessForm{Role: "custom", Holds: tenancy.Developer.Permissions().With(tenancy.MembersWrite), Chosen: tenancy.PermissionsOf(tenancy.WalletsRead)}
	shop := layout.Application{Place: layout.Place{Name: "Shop", Href: "/o/acme/a/shop"}, Live: true}
	return map[string]view{
		"setup":       accountpage.SetupPage(accountpage.Setup{Draft: refused, Action: "/setup/x"}),
		"login":       accountpage.LoginPage(accountpage.Login{SignedOut: true}),
		"login-wrong": accountpage.LoginPage(accountpage.Login{Draft: component.Draft{Problems: []component.Problem{{Message: "Wrong email or password."}}}}),
		"code":        accountpage.SecondStepPage(accountpage.SecondStep{}),
		"again":       accountpage.AgainPage(accountpage.Again{Frame: plain, NeedsCode: true}),
		"invited":     accountpage.InvitedPage(accountpage.Invited{Organization: "Acme", Role: "Support", LoginHref: "/login"}),
		"account": accountpage.AccountPage(accountpage.Account{Frame: plain, HasFactor: true, CodesLeft: 9, Sessions: []accountpage.OpenSession{
			{ID: "ses_1", Agent: "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36", Address: "2001:db8:1:2:3:4:5:6", SeenAt: moment, Since: moment, Current: true},
			{ID: "ses_2", Address: "192.0.2.1", SeenAt: moment, Since: moment},
		}}),
		"factor": accountpage.FactorSetupPage(accountpage.FactorSetup{
			Frame: plain, Seed: "AAAA BBBB CCCC DDDD EEEE FFFF GGGG HHHH", Address: "otpauth://totp/x", Picture: accountpage.QR{Size: 41, Path: chessboard(41)},
			RequiredBy: []string{"Acme", "<b>Bolt</b> & a very long name that goes on and on and on"},
		}),
		"password":         accountpage.PasswordPage(accountpage.Password{Frame: plain, Temporary: true}),
		"password-refused": accountpage.PasswordPage(accountpage.Password{Frame: plain, Draft: refused, Temporary: true}),
		"recovery":         accountpage.RecoveryCodesPage(accountpage.RecoveryCodes{Frame: plain, Codes: "aaaaaaa-bbbbbb-ccccccc-dddddd\neeeeeee-ffffff-ggggggg-hhhhhh"}),
		"orgs":             orgpage.OrganizationsPage(orgpage.Organizations{Frame: plain, MayCreate: true}),
		"orgs-none":        orgpage.OrganizationsPage(orgpage.Organizations{Frame: layout.Frame{Title: "Organizations", Person: person}}),
		"orgs-new":         orgpage.OrganizationNewPage(orgpage.OrganizationNew{Frame: plain}),
		"org": orgpage.OrganizationPage(orgpage.Organization{Frame: in("applications"), NewHref: "/o/acme/a/new", SuggestFactor: true, Cards: []orgpage.ApplicationCard{
			{Application: shop, Uses: "1,204,331", Denials: "12", SyncErrors: "0"},
			{Application: layout.Application{Place: layout.Place{Name: "Chat", Href: "/o/acme/a/chat"}}, Uses: "3", Denials: "0", SyncErrors: "1"},
		}}),
		"org-empty":    orgpage.OrganizationPage(orgpage.Organization{Frame: in("applications"), NewHref: "/o/acme/a/new"}),
		"app-new":      orgpage.ApplicationNewPage(orgpage.ApplicationNew{Frame: in("applications"), Action: "/o/acme/a/new"}),
		"org-settings": orgpage.OrganizationSettingsPage(orgpage.OrganizationSettings{Frame: in("organization"), Slug: "acme", ID: "org_01m7ewzp3pfr4976jxkvfa63gm", FactorAction: "/x"}),
		"org-optional": orgpage.OrganizationSettingsPage(orgpage.OrganizationSettings{Frame: in("organization"), Slug: "acme", ID: "org_01m7ewzp3pfr4976jxkvfa63gm", FactorAction: "/x", HasFactor: true}),
		"org-required": orgpage.OrganizationSettingsPage(orgpage.OrganizationSettings{Frame: in("organization"), Slug: "acme", ID: "org_01m7ewzp3pfr4976jxkvfa63gm", FactorAction: "/x", HasFactor: true, RequiresFactor: true}),
		"members": orgpage.MembersPage(orgpage.Members{
			Frame: in("members"), InviteHref: "/o/acme/members/invite", LeaveAction: "/o/acme/leave",
			People: []orgpage.MemberRow{
				{Name: "Ann Example", Email: "ann@example.com", Role: "Owner", HasFactor: true, JoinedAt: moment, SeenDay: moment, You: true},
				{Name: "<i>Bob</i>", Email: "bob.with.a.long.name@subsidiary.example.com", Role: "Support", JoinedAt: moment, Href: "/o/acme/members/x", InvitedAs: "Bob <b> of support"},
			},
			Invitations: []orgpage.InvitationRow{{Note: "Carol", Role: "Developer", ExpiresAt: moment, Withdraw: "/x"}},
		}),
		"invite":      orgpage.InvitePage(orgpage.Invite{AccessForm: access, Frame: in("members"), Action: "/x", Back: "/o/acme/members"}),
		"invitation":  orgpage.InvitationMadePage(orgpage.InvitationMade{Frame: in("members"), Note: "Carol", Link: "https://purser.example/invite/Vbuo16DQaYnkEvZm9wDRIxIfLEILhplQq7MYvuoL3tA", ExpiresAt: moment, Done: "/o/acme/members"}),
		"member-edit": orgpage.MemberEditPage(orgpage.MemberEdit{AccessForm: access, Frame: in("members"), Name: "Bob", Email: "bob@example.com", Back: "/o/acme/members", Action: "/x", RemoveAction: "/x/remove"}),
		"audit": orgpage.AuditLogPage(orgpage.AuditLog{
			Frame: in("audit"), Path: "/o/acme/audit", Export: "/o/acme/audit.csv", Actors: []component.Option{{Text: "Everybody"}}, Actions: []component.Option{{Text: "Everything"}},
			Pages: component.Pages{Older: "/o/acme/audit?before=2"},
			Entries: []orgpage.AuditEntry{
				{Number: 3, At: moment, Actor: "ann@example.com", Address: "192.0.2.1", Action: "organization.rename", Target: "org_01m7ewzp3pfr4976jxkvfa63gm", Changes: []orgpage.FieldChange{{Name: "name", Before: "Acme", After: "<b>Acme</b> & Sons"}}},
				{Number: 4, At: moment, Actor: "ann@example.com", Address: "192.0.2.1", Action: "plan.update", Target: "team", Application: "Shop", Changes: []orgpage.FieldChange{
					{Name: "creditGrants", Before: "tokens 5000000000; coins 1", After: "tokens 9999999999999999999"}, {Name: "featureLimits", After: "messages 1000000 month block"},
					{Name: "costNanocredits", Before: "1", After: "1500000000"}, {Name: "revokedAt", After: "1794648660123"}, {Name: "replacedBy", After: "key_01m7ewzp3pfr4976jxkvfa63gm"},
					{Name: "permissions", Before: "credits:read, features:read, plans:read, wallets:read, deposits:read", After: "credits:read"}, {Name: "change", After: "-1234.5"},
				}},
				{Number: 2, At: moment, Actor: "command line", Action: "key.create", Target: "key_01m7ewzp3pfr4976jxkvfa63gm", Application: "Shop"},
			},
		}),
	}
}

func TestPeoplesPagesAreAccessible(t *testing.T) {
	t.Parallel()
	lookOver(t, peoplePages(), screensOfSample)
}

// chessboard has the shape of a QR code, and says nothing.
func chessboard(size int) string {
	var path strings.Builder
	for y := range size {
		for x := y % 2; x < size; x += 2 {
			fmt.Fprintf(&path, "M%d %dh1v1h-1z", x, y)
		}
	}
	return path.String()
}
