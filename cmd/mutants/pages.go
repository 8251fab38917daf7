package main

// Bugs in what pages show of an application.
var pageMutants = []mutant{
	{
		name:    "the Go client follows redirects",
		changes: []change{once("docs/clients/purser.go.txt", "{ return http.ErrUseLastResponse }", "{ return nil }")},
		pkg:     "./cmd/purser", tests: "TestClientsRepeatOnlyWhatIsSafe",
	},
	{
		name:    "the Python client follows redirects",
		changes: []change{once("docs/clients/purser.py", "build_opener(NoRedirects)", "build_opener()")},
		pkg:     "./cmd/purser", tests: "TestClientsRepeatOnlyWhatIsSafe",
	},
	{
		name:    "a client repeats what may have been done",
		changes: []change{once("docs/clients/purser.py", "if status != 429 and not repeatable:", "if False:")},
		pkg:     "./cmd/purser", tests: "TestClientsRepeatOnlyWhatIsSafe",
	},
	{
		name:    "a client gives up before the feed responds",
		changes: []change{once("docs/clients/purser.py", "timeout=40", "timeout=20")},
		pkg:     "./cmd/purser", tests: "TestClientsOutwaitTheFeed",
	},
	{
		name:    "a member who may not read wallets is linked to them",
		changes: []change{once("web/site/paths.go", "return req.LinkIfPermitted(tenancy.WalletsRead, \"wallets\", id.Format(ids.Wallet))", "return req.LinkIfPermitted(tenancy.JournalRead, \"wallets\", id.Format(ids.Wallet))")},
		pkg:     "./cmd/purser", tests: "TestDemo",
	},
	{
		name:    "the preview of a return to a free plan grants again",
		changes: []change{once("billing/preview.go", "} else if order.Target.Free() && !freeGrantDue(", "} else if order.Target.Free() && freeGrantDue(")},
		pkg:     "./billing", tests: "TestAPreviewedReturnToAFreePlanGrantsOnce",
	},
	{
		name:    "a restore doesn't wait for the end of the one before",
		changes: []change{once("store/internal/pg/restore.go", "err != nil || yes || time.Now().After(deadline) {", "err != nil || yes || deadline.After(time.Now()) {")},
		pkg:     "./store", tests: "TestARestoreWaitsForTheEndOfTheOneBefore",
	},
	{
		name:    "denials of an identity are those of every application",
		changes: []change{once("store/reports/denials.go", "WHERE app_id = $1 AND identity = $10 AND id < $2", "WHERE $1::uuid IS NOT NULL AND identity = $10 AND id < $2")},
		pkg:     "./store", tests: "TestStatementsKeepTheRules",
	},
	{
		name:    "a denial forgets the allowance",
		changes: []change{once("store/reports/denials.go", "\tif overage != nil {\n", "\tif false {\n")},
		pkg:     "./store", tests: "TestDenialsAreKeptAsTheyWereDecided",
	},
	{
		name:    "a client that retries fills the list of denials",
		changes: []change{once("store/reports/denial_limits.go", "if l.repeats[same] >= DenialRepeats {", "if false {")},
		pkg:     "./store/reports", tests: "TestDenialLimits",
	},
	{
		name:    "a flood of denials is stored whole",
		changes: []change{once("store/reports/denial_limits.go", "if full > now+DenialBurst*denialInterval {", "if false {")},
		pkg:     "./store/reports", tests: "TestDenialLimits",
	},
	{
		name:    "denials are kept for ever",
		changes: []change{once("store/reports/denials.go", "SELECT d.id FROM denial_records d WHERE d.app_id = $1 AND d.id < $2 ORDER", "SELECT d.id FROM denial_records d WHERE d.app_id = $1 AND d.id < $2 AND false ORDER")},
		pkg:     "./store", tests: "TestDenialsAreBounded",
	},
	{
		name:    "a search for a customer minds upper and lower case",
		changes: []change{once("store/reports/search.go", "list := []string{text, lower, strings.ToUpper(text)}", "list := []string{text}")},
		pkg:     "./store", tests: "TestSearchWallets",
	},
	{
		name:    "a member who may only revoke keys is shown the settings",
		changes: []change{once("web/developers/settings.go", "if !req.Member.May(tenancy.SettingsWrite) {", "if !req.Member.May(tenancy.KeysWrite) {")},
		pkg:     "./web", tests: "TestTheDangerZone",
	},
	{
		name:    "members see each other's sessions to the second",
		changes: []change{once("store/people/users_members.go", "max(s.seen_at) / 86400000 * 86400000", "max(s.seen_at)")},
		pkg:     "./store", tests: "TestARosterHasTheDayOfTheNewestSession",
	},
	{
		name:    "an export gives its slot back before it is sent",
		changes: []change{once("web/site/csv.go", "req.afterSend = func() { s.exports.Leave(req.Org.ID, 1) }", "defer s.exports.Leave(req.Org.ID, 1)")},
		pkg:     "./web", tests: "TestUnsentExportsAreBounded",
	},
	{
		name: "exports are shared by all organizations",
		changes: []change{
			once("web/site/csv.go", "s.exports.Enter(req.Org.ID, 1)", "s.exports.Enter(ids.ID{}, 1)"),
			once("web/site/csv.go", "s.exports.Leave(req.Org.ID, 1)", "s.exports.Leave(ids.ID{}, 1)"),
			once("web/site/csv.go", "\t\"purser/fault\"\n", "\t\"purser/fault\"\n\t\"purser/ids\"\n"),
		},
		pkg: "./web", tests: "TestUnsentExportsAreBounded",
	},
	{
		name:    "a search skips wallets at the end of a scan",
		changes: []change{once("store/reports/search.go", "next.Before = found[len(found)-1].ID", "next.Before = found[0].ID")},
		pkg:     "./store", tests: "TestSearchWallets",
	},
}
