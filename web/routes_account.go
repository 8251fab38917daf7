package web

import "purser/tenancy"

// accountRoutes are the pages of users and organizations.
func (s *Site) accountRoutes() []route {
	return []route{
		get("/", anyone, s.welcome),
		whileTemporary(post("/theme", anyone, s.chooseTheme)),

		get("/setup/{token}", anyone, s.setupPage),
		post("/setup/{token}", anyone, s.setup),
		get("/login", anyone, s.loginPage),
		whileTemporary(post("/login", anyone, s.login)),
		get("/login/code", anyone, s.codePage),
		whileTemporary(post("/login/code", anyone, s.loginCode)),
		get("/forgot", anyone, s.forgotPage),
		post("/forgot", anyone, s.forgot),
		get("/reset/{token}", anyone, s.resetPage),
		post("/reset/{token}", anyone, s.resetPassword),
		get("/confirm", signedIn, s.confirmPage),
		post("/confirm", signedIn, s.confirm),
		whileTemporary(post("/logout", signedIn, s.logout)),
		get("/invite/{token}", anyone, s.invitedPage),
		post("/invite/{token}", anyone, s.accept),

		get("/account", signedIn, s.account),
		post("/account/name", signedIn, s.renameAccount),
		post("/account/mail", signedIn, s.chooseMails),
		whileTemporary(get("/account/password", signedIn, s.passwordPage)),
		whileTemporary(post("/account/password", signedIn, s.changePassword)),
		post("/account/sessions/end", signedIn, s.endOtherSessions),
		post("/account/sessions/{session}/end", signedIn, s.endSession),
		reauth(get("/account/factor", signedIn, s.factorPage)),
		reauth(post("/account/factor", signedIn, s.addFactor)),
		reauth(post("/account/factor/codes", signedIn, s.replaceCodes)),
		reauth(post("/account/factor/remove", signedIn, s.removeFactor)),

		get("/o", signedIn, s.organizations),
		get("/o/new", signedIn, s.newOrganizationPage),
		post("/o/new", signedIn, s.createOrganization),
		get("/o/{org}", anyMember, s.organizationPage),
		get("/o/{org}/a/new", tenancy.AppsWrite, s.newApplicationPage),
		post("/o/{org}/a/new", tenancy.AppsWrite, s.createApplication),
		get("/o/{org}/settings", tenancy.OrganizationWrite, s.organizationSettingsPage),
		post("/o/{org}/settings", tenancy.OrganizationWrite, s.renameOrganization),
		reauth(post("/o/{org}/settings/second-factor", tenancy.OrganizationWrite, s.setFactorRequirement)),

		get("/o/{org}/members", tenancy.MembersRead, s.members),
		reauth(get("/o/{org}/members/invite", tenancy.MembersWrite, s.invitePage)),
		reauth(post("/o/{org}/members/invite", tenancy.MembersWrite, s.invite)),
		reauth(get("/o/{org}/members/{user}", tenancy.MembersWrite, s.memberPage)),
		reauth(post("/o/{org}/members/{user}", tenancy.MembersWrite, s.changeMember)),
		reauth(post("/o/{org}/members/{user}/remove", tenancy.MembersWrite, s.removeMember)),
		post("/o/{org}/invitations/{invitation}/withdraw", tenancy.MembersWrite, s.withdrawInvitation),
		post("/o/{org}/leave", anyMember, s.leave),

		get("/o/{org}/audit", tenancy.AuditRead, s.auditLog),
		get("/o/{org}/audit.csv", tenancy.AuditRead, s.export(s.auditExport)),
	}
}
