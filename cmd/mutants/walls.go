package main

// Bugs in what a start restores and refuses.
var startMutants = []mutant{
	bug("serve while a table of applications is not distributed", "./store", "TestDistribute",
		once("store/internal/pg/login.go", "\tif len(local) > 0 {\n", "\tif false {\n")),
	bug("write several applications in one distributed transaction", "./store", "TestAQueueOfADistributedDatabaseGivesOneApplicationABatch",
		once("store/usage_queue.go", "\tif q.oneApp {\n", "\tif false {\n")),
	bug("a restored database without its policies", "./store", "TestPrepareRepairsGrantsAndPolicies",
		once("store/internal/pg/rights.go", "\tif !t.Sound {\n", "\tif false {\n")),
	bug("a serving role that keeps what it was granted by hand", "./store", "TestPrepareRepairsGrantsAndPolicies",
		once("store/internal/pg/rights.go", "if !want[privilege] && !newer {", "if false {")),
	bug("a restored database without its serving role", "./store", "TestARestoredDumpServesBehindItsWalls",
		once("store/internal/pg/login.go", "\tif !s.RoleExists {\n\t\t_, err := conn.Exec", "\tif false {\n\t\t_, err := conn.Exec")),
	bug("connections through a pooler serve without their role", "./store", "TestAPoolerThatIgnoresStartupParametersIsRefused",
		once("store/internal/pg/session.go", "\tcase !asAsked:\n", "\tcase false:\n")),
	bug("a start with any secret key", "./cmd/purser", "TestADatabaseKnowsItsSecretKey",
		once("cmd/purser/secret_check.go", "len(recorded) > 0 && len(unknown) == len(recorded):", "false:")),
	bug("a new secret key is left in a folder whose database has another", "./cmd/purser", "TestANewSecretKeyIsWrittenForGood",
		once("cmd/purser/secret_check.go", "decide(recorded); err != nil", "decide(recorded[:0]); err != nil")),
}

// Bugs in the walls between the sandboxes of applications, and in what one of them may
// use up.
var sandboxMutants = []mutant{
	bug("clients that read nothing hold the page slots of the sandbox", "./payments/sandbox", "TestClientsThatReadNothingHoldNoPageSlot",
		once("payments/sandbox/pages.go", "\tdone()\n\tsent, err", "\tsent, err")),
	bug("the sandbox answers clients that read nothing", "./payments/sandbox", "TestResponsesAreCountedUntilTheyAreSent",
		once("payments/sandbox/stripe.go", "got, sent = s.errorReply(req, tooManyReplies), func() {}", "sent = func() {}")),
	bug("a filter that matches nothing reads the whole account", "./payments/sandbox", "TestAFilterThatMatchesNothingReadsALimitedPart",
		once("payments/sandbox/engine/list.go", "if read > maxListed {", "if read < 0 {")),
	bug("sandbox objects of all applications are loaded", "./store", "TestStatementsKeepTheRules",
		once("store/payments/sandbox_objects.go", "FROM sandbox_objects WHERE app_id = $1 AND key = t.key OFFSET 0", "FROM sandbox_objects WHERE $1::uuid IS NOT NULL AND key = t.key OFFSET 0")),
	bug("sandbox objects refer to those of other applications", "./store", "TestStatementsKeepTheRules",
		once("store/payments/sandbox_objects.go", "FROM sandbox_objects WHERE app_id = $1 AND key = r.key OFFSET 0", "FROM sandbox_objects WHERE $1::uuid IS NOT NULL AND key = r.key OFFSET 0")),
	bug("sandbox objects have no policy", "./store", "TestRowLevelSecurity",
		once("migrations/20261115000024_sandbox_rows.tx.up.sql", "ALTER TABLE sandbox_objects FORCE ROW LEVEL SECURITY;", "SELECT 1;"),
		once("migrations/20261115000024_sandbox_rows.tx.up.sql", "ALTER TABLE sandbox_objects ENABLE ROW LEVEL SECURITY;", "SELECT 1;"),
		once("store/internal/pg/rights.go", "if !t.Enabled {", "if !t.Enabled && t.Name != \"sandbox_objects\" {")),
	bug("a sandbox key opens every application", "./payments/sandbox", "TestAuthentication",
		once("payments/sandbox/keys.go", "if err != nil || !hmac.Equal([]byte(shown), []byte(keyMAC(s.options.Secret, name))) {", "if err != nil || shown == \"\" {")),
	bug("an API key steers the sandbox of another application", "./payments/sandbox", "TestControlAccess",
		once("payments/sandbox/control.go", "if err != nil || app != owner {", "if err != nil {")),
	bug("a live application is admitted to the sandbox", "./cmd/purser", "TestSandboxAccess",
		once("cmd/purser/payments.go", "if err != nil || application.Live {", "if err != nil && application.Live {")),
	bug("requests to the sandbox have no rate limit", "./payments/sandbox", "TestRequestsPastTheRateAreRefusedAsStripeDoes",
		once("payments/sandbox/keys.go", "\tif wait <= 0 {\n", "\tif true {\n")),
	bug("reads of one application use all connections of the sandbox", "./payments/sandbox", "TestReadsOfOneAccountUseTwoConnections",
		once("payments/sandbox/accounts.go", "const maxReads = 2\n", "const maxReads = 200\n")),
	bug("a jump of the sandbox's clock is one transaction", "./payments/sandbox", "TestAFarJumpOfTheClockFiresTimersInBoundedTransactions",
		once("payments/sandbox/engine/clock.go", "const maxFired = 50\n", "const maxFired = 1 << 30\n")),
}
