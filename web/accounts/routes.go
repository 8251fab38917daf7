package accounts

import (
	"purser/ids"
	"purser/tenancy"
	"purser/web/site"
)

// Routes are the pages of users and organizations.
func (s *Pages) Routes() []site.Route {
	return []site.Route{
		site.Get("/", site.Anyone, s.welcome),
		site.WhileTemporary(site.Post("/theme", site.Anyone, s.chooseTheme)),

		site.Get("/setup/{token}", site.Anyone, ofLink(s.setupPage, s.setupClosed)),
		site.Post("/setup/{token}", site.Anyone, ofLink(s.setup, s.setupClosed)),
		site.Get("/login", site.Anyone, s.loginPage),
		site.WhileTemporary(site.Post("/login", site.Anyone, s.login)),
		site.Get("/login/code", site.Anyone, s.codePage),
		site.WhileTemporary(site.Post("/login/code", site.Anyone, s.loginCode)),
		site.Get("/forgot", site.Anyone, s.forgotPage),
		site.Post("/forgot", site.Anyone, s.forgot),
		site.Get("/reset/{token}", site.Anyone, ofLink(s.resetPage, resetClosed)),
		site.Post("/reset/{token}", site.Anyone, ofLink(s.resetPassword, resetClosed)),
		site.Get("/confirm", site.SignedIn, s.confirmPage),
		site.Post("/confirm", site.SignedIn, s.confirm),
		site.WhileTemporary(site.Post("/logout", site.SignedIn, s.logout)),
		site.Get("/invite/{token}", site.Anyone, ofLink(s.invitedPage, invitationClosed)),
		site.Post("/invite/{token}", site.Anyone, ofLink(s.accept, invitationClosed)),

		site.Get("/account", site.SignedIn, s.account),
		site.Post("/account/name", site.SignedIn, s.renameAccount),
		site.Post("/account/mail", site.SignedIn, s.chooseMails),
		site.WhileTemporary(site.Get("/account/password", site.SignedIn, s.passwordPage)),
		site.WhileTemporary(site.Post("/account/password", site.SignedIn, s.changePassword)),
		site.Post("/account/sessions/end", site.SignedIn, s.endOtherSessions),
		site.Post("/account/sessions/{session}/end", site.SignedIn, site.With(site.ID("session", ids.Session), s.endSession)),
		site.Reauth(site.Get("/account/factor", site.SignedIn, s.factorPage)),
		site.Reauth(site.Post("/account/factor", site.SignedIn, s.addFactor)),
		site.Reauth(site.Post("/account/factor/codes", site.SignedIn, s.replaceCodes)),
		site.Reauth(site.Post("/account/factor/remove", site.SignedIn, s.removeFactor)),

		site.Get("/o", site.SignedIn, s.organizations),
		site.Get("/o/new", site.SignedIn, s.newOrganizationPage),
		site.Post("/o/new", site.SignedIn, s.createOrganization),
		site.Get("/o/{org}", site.AnyMember, s.organizationPage),
		site.Get("/o/{org}/a/new", tenancy.AppsWrite, s.newApplicationPage),
		site.Post("/o/{org}/a/new", tenancy.AppsWrite, s.createApplication),
		site.WhileArchived(site.Get("/o/{org}/settings", tenancy.OrganizationWrite, s.organizationSettingsPage)),
		site.Get("/o/{org}/settings/archive", tenancy.OrganizationWrite, s.archiveOrganizationPage),
		site.Post("/o/{org}/settings/archive", tenancy.OrganizationWrite, s.archiveOrganization),
		site.WhileArchived(site.Post("/o/{org}/settings/restore", tenancy.OrganizationWrite, s.restoreOrganization)),
		site.Get(site.AppPrefix+"/settings/archive", tenancy.AppsWrite, s.archivePage),
		site.Post(site.AppPrefix+"/settings/archive", tenancy.AppsWrite, s.archive),
		site.WhileArchived(site.Post(site.AppPrefix+"/settings/restore", tenancy.AppsWrite, s.restore)),
		site.Post("/o/{org}/settings", tenancy.OrganizationWrite, s.renameOrganization),
		site.WhileArchived(site.Reauth(site.Post("/o/{org}/settings/second-factor", tenancy.OrganizationWrite, s.setFactorRequirement))),

		site.Get("/o/{org}/members", tenancy.MembersRead, s.members),
		site.Reauth(site.Get("/o/{org}/members/invite", tenancy.MembersWrite, s.invitePage)),
		site.Reauth(site.Post("/o/{org}/members/invite", tenancy.MembersWrite, s.invite)),
		site.WhileArchived(site.Reauth(site.Get("/o/{org}/members/{user}", tenancy.MembersWrite, site.With(pathMember, s.memberPage)))),
		site.WhileArchived(site.Reauth(site.Post("/o/{org}/members/{user}", tenancy.MembersWrite, site.With(pathMember, s.changeMember)))),
		site.WhileArchived(site.Reauth(site.Post("/o/{org}/members/{user}/remove", tenancy.MembersWrite, site.With(pathMember, s.removeMember)))),
		site.WhileArchived(site.Post("/o/{org}/invitations/{invitation}/withdraw", tenancy.MembersWrite, site.With(site.ID("invitation", ids.Invitation), s.withdrawInvitation))),
		site.WhileArchived(site.Post("/o/{org}/leave", site.AnyMember, s.leave)),

		site.Get("/o/{org}/audit", tenancy.AuditRead, s.auditLog),
		site.Get("/o/{org}/audit.csv", tenancy.AuditRead, s.Export(s.auditExport)),
	}
}
