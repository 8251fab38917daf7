package main

// Bugs in who is let in, and what is recorded of changes.
var accountMutants = []mutant{
	{
		name:    "applications of an organization are not bounded",
		changes: []change{once("store/people/org.go", "if number >= MaxApplications {", "if number > MaxApplications {")},
		pkg:     "./store", tests: "TestApplicationsOfAnOrganizationAreBounded",
	},
	{
		name:    "open invitations of an organization are not bounded",
		changes: []change{once("store/people/invitations.go", "if open >= MaxOpenInvitations {", "if open > MaxOpenInvitations {")},
		pkg:     "./store", tests: "TestOpenInvitationsAreBounded",
	},
	{
		name:    "each taken spelling of a slug is tried",
		changes: []change{once("store/people/control.go", "if slices.Contains(known, candidate) {", "if false && slices.Contains(known, candidate) {")},
		pkg:     "./store/people", tests: "TestTakenSlugsAreNotTried",
	},
	{
		name:    "people change an archived application",
		changes: []change{once("store/internal/pg/audit.go", "return tx.audit(ctx, AppendActive,", "return tx.audit(ctx, AppendAudit,")},
		pkg:     "./store", tests: "TestArchivedApplications",
	},
	{
		name:    "restoring an application brings keys back that were revoked meanwhile",
		changes: []change{once("store/keys.go", "replaced_by = $5, archived_at = NULL", "replaced_by = $5")},
		pkg:     "./store", tests: "TestArchivedApplications",
	},
	{
		name:    "restoring an application brings revoked keys back",
		changes: []change{once("store/archive.go", "archived_at = NULL WHERE app_id = $1 AND archived_at IS NOT NULL", "archived_at = NULL WHERE app_id = $1")},
		pkg:     "./store", tests: "TestArchivedApplications",
	},
	{
		name: "nodes keep accepting events of an archived application",
		changes: []change{once("store/archive.go", "if _, err := tx.AdvanceEpoch(ctx); err != nil {\n\t\t\treturn err\n\t\t}\n\t\tif err := tx.LockToArchive(",
			"if err := tx.LockToArchive(")},
		pkg: "./store", tests: "TestArchivedApplications",
	},
	{
		name:    "a live application is archived while customers pay",
		changes: []change{once("tenancy/archive.go", "case i.PaidSubscriptions > 0:", "case i.PaidSubscriptions < 0:")},
		pkg:     "./tenancy", tests: "TestLiveApplicationsAreArchivedWithoutOpenMoney",
	},
	{
		name:    "pages of an archived application accept forms",
		changes: []change{once("web/site/guard.go", "if req.archivedAt() != 0 && r.Changes() && !r.Archived {", "if req.archivedAt() < 0 {")},
		pkg:     "./web", tests: "TestArchive",
	},
	{
		name:    "strangers who guess lock an owner out",
		changes: []change{once("web/accounts/login.go", "\t\tfrom = site.AttemptNetwork(req.Bearer.Address).String()\n", "\t\tfrom = \"anywhere\"\n")},
		pkg:     "./web", tests: "TestForeignGuessesNeverLockTheOwnerOut",
	},
	{
		name:    "a known browser is known for every account",
		changes: []change{once("web/accounts/device.go", "Row: user}", "Row: ids.ID{1}}")},
		pkg:     "./web", tests: "TestKnownBrowsersAreCountedToo",
	},
	{
		name:    "codes are guessed from many networks",
		changes: []change{once("web/accounts/login.go", "credential.CodeSubject(user.Format(ids.User), device)", "credential.CodeSubject(user.Format(ids.User), req.Bearer.Address)")},
		pkg:     "./web", tests: "TestKnownBrowsersAreCountedToo",
	},
	{
		name:    "passwords are guessed from many networks under the usual rules",
		changes: []change{once("store/people/users_account.go", "if all.Count >= credential.AddressLimit {", "if false {")},
		pkg:     "./web", tests: "TestManyFailedAttemptsMakeNetworksWaitLonger",
	},
	{
		name:    "guesses from many networks lock an owner out",
		changes: []change{once("tenancy/credential/throttle.go", "\tguardedAttempts    = 2\n", "\tguardedAttempts    = 0\n")},
		pkg:     "./web", tests: "TestGuessesFromAThousandNetworksKeepNoOwnerOut",
	},
	{
		name:    "attempts in all networks are not counted together",
		changes: []change{once("store/people/users_account.go", "SET failures = failures + 1, failed_at = $2 WHERE subject = $1`, address[:], now)", "SET failed_at = $2 WHERE subject = $1`, address[:], now)")},
		pkg:     "./web", tests: "TestManyFailedAttemptsMakeNetworksWaitLonger",
	},
	{
		name:    "wrong codes of strangers block recovery codes",
		changes: []change{once("web/accounts/login.go", "if credential.ParseRecoveryCode(code) != \"\" && !p.known {", "if false {")},
		pkg:     "./web", tests: "TestKnownBrowsersAreCountedToo",
	},
	{
		name:    "a check that found the queue full is counted",
		changes: []change{once("web/accounts/login.go", "\tleave, err := s.passwords.enter(req.Context, p.known)\n", "\tif err := s.countAttempt(req, p); err != nil {\n\t\treturn false, false, err\n\t}\n\tleave, err := s.passwords.enter(req.Context, p.known)\n")},
		pkg:     "./web/accounts", tests: "TestAFullQueueCountsNoAttempt",
	},
	{
		name:    "a new password confirms without the second factor",
		changes: []change{once("web/accounts/account.go", "\tif !account.HasFactor {", "\tif true {")},
		pkg:     "./web", tests: "TestAuthenticator",
	},
	{
		name: "a replaced password still signs in with a code",
		changes: []change{once("web/accounts/login.go", "\tif account.PasswordAt != passwordAt {", "\tif account.PasswordAt < 0 {"),
			once("store/people/sessions.go", "\t\t\tif current != s.PasswordAt {", "\t\t\tif false {")},
		pkg: "./web", tests: "TestAuthenticator",
	},
	{
		name:    "a session opens although its password was replaced meanwhile",
		changes: []change{once("store/people/sessions.go", "\t\t\tif current != s.PasswordAt {", "\t\t\tif false {")},
		pkg:     "./store", tests: "TestAReplacedPassword",
	},
	{
		name:    "a session that ended changes the password",
		changes: []change{once("store/people/users_account.go", "\t\tif was != \"\" {", "\t\tif false {")},
		pkg:     "./store", tests: "TestAReplacedPassword",
	},
	{
		name:    "a session that ended gets a new token",
		changes: []change{once("web/site/session.go", "\tcase b.renewed:\n", "\tcase false:\n")},
		pkg:     "./web/site", tests: "TestASessionThatEndedGetsNoNewToken",
	},
	{
		name: "access that ended while a form arrived is used",
		changes: []change{
			once("web/site/guard.go", "\t\tif r.Method != http.MethodGet {\n", "\t\tif false {\n"),
			once("web/site/guard.go", "\t\tif req.badForm != nil {\n\t\t\treturn Response{}, req.badForm", "\t\tif err := req.readForm(); err != nil {\n\t\t\treturn Response{}, err"),
		},
		pkg: "./web", tests: "TestABodyThatArrivesLate",
	},
	{
		name:    "a member who was removed meanwhile makes a key",
		changes: []change{once("store/internal/pg/audit.go", "AND ($4::uuid IS NULL OR EXISTS", "AND (true OR EXISTS")},
		pkg:     "./store", tests: "TestARemovedMemberMakesNoKey",
	},
	{
		name:    "balances:adjust erases customers",
		changes: []change{once("web/support/routes.go", `site.Post(app+"/wallets/{id}/erase", tenancy.WalletsErase`, `site.Post(app+"/wallets/{id}/erase", tenancy.BalancesAdjust`)},
		pkg:     "./web", tests: "TestErasePage",
	},
	{
		name:    "a temporary password opens everything",
		changes: []change{once("web/site/guard.go", "\tif req.MustChange && !r.temporary &&", "\tif false &&")},
		pkg:     "./web", tests: "TestTemporaryPasswordOnlyOpensItsChange",
	},
	{
		name:    "a temporary password lasts for ever",
		changes: []change{once("store/people/users_account.go", "return a.TemporaryUntil != 0 && now >= a.TemporaryUntil", "return false")},
		pkg:     "./web", tests: "TestTemporaryPasswordOnlyOpensItsChange",
	},
	{
		name:    "members act without the factor that their organization requires",
		changes: []change{once("web/site/guard.go", "\tif req.NeedsFactor(req.Org) {\n", "\tif false {\n")},
		pkg:     "./web", tests: "TestOrganizationRequiresASecondFactor",
	},
	{
		name:    "everyone creates organizations",
		changes: []change{once("web/accounts/organizations.go", "\tif s.newOrganizations {\n\t\treturn nil\n", "\tif true {\n\t\treturn nil\n")},
		pkg:     "./web", tests: "TestNewOrganizationsAreTheOperatorsUnlessTurnedOn",
	},
	{
		name:    "the command line finds an organization by a name that members chose",
		changes: []change{once("store/people/directory.go", "WHERE command_name = $1`", "WHERE name = $1 ORDER BY created_at LIMIT 1`")},
		pkg:     "./store", tests: "TestProvisionApplication",
	},
	{
		name:    "an upgrade loses the names of organizations that have owners by now",
		changes: []change{once("migrations/20261115000025_account_rules.tx.up.sql", "     OR (e.user_id IS NULL AND e.actor = 'command line')\n", "")},
		pkg:     "./store", tests: "TestOlderOrganizationsKeepTheNamesThatTheCommandLineUses",
	},
	{
		name:    "what an API key changes is not audited",
		changes: []change{once("api/authenticate.go", "return s.store.App(c.scope).By(s.actor(c))", "return s.store.App(c.scope)")},
		pkg:     "./api", tests: "TestChangesOfAPIKeysAreAudited",
	},
	{
		name:    "what an API key asks the payment provider for is not audited",
		changes: []change{once("api/checkouts.go", "\tfound, err := record(c.ctx)\n", "\tfound, err := true, error(nil)\n")},
		pkg:     "./api", tests: "TestChangesOfAPIKeysAreAudited",
	},
	{
		name:    "what makes a customer's wallet is not audited",
		changes: []change{once("api/checkouts.go", "\tif !found { ", "\tif !found && identity == \"\" { ")},
		pkg:     "./api", tests: "TestChangesOfAPIKeysAreAudited",
	},
	{
		name:    "requests with a revoked key fill the list of failures",
		changes: []change{once("api/record_request.go", "r.Authenticated = r.Status != http.StatusUnauthorized && (", "r.Authenticated = r.Status != http.StatusOK || (")},
		pkg:     "./api", tests: "TestFailedRequestsSayWhomTheyConcern",
	},
	{
		name:    "an application keeps any number of failures",
		changes: []change{once("store/reports/stats.go", "return f.kept[all] <= FailuresPerMinute || f.kept[same] <= failuresPerCode", "return true")},
		pkg:     "./store", tests: "TestFailedRequestsAreKeptForADay",
	},
	{
		name:    "a change of a password undoes an operator's reset",
		changes: []change{once("store/people/users_account.go", "\t\tif current != was {\n", "\t\tif false {\n")},
		pkg:     "./store", tests: "TestResetPassword",
	},
	{
		name:    "a change of a password leaves no trace",
		changes: []change{once("store/people/users_account.go", "\t\treturn p.auditOwn(ctx, tx, by, \"account.password\"", "\t\tif true {\n\t\t\treturn nil\n\t\t}\n\t\treturn p.auditOwn(ctx, tx, by, \"account.password\"")},
		pkg:     "./web", tests: "TestAccountChangesAreAudited",
	},
}
