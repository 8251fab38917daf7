package main

// Bugs in what a start restores and refuses.
var startMutants = []mutant{
	{
		name:    "serve while a table of applications is not distributed",
		changes: []change{once("store/internal/pg/login.go", "\tif len(local) > 0 {\n", "\tif false {\n")},
		pkg:     "./store", tests: "TestDistribute",
	},
	{
		name:    "write several applications in one distributed transaction",
		changes: []change{once("store/usage_queue.go", "\tif q.oneApp {\n", "\tif false {\n")},
		pkg:     "./store", tests: "TestAQueueOfADistributedDatabaseGivesOneApplicationABatch",
	},
	{
		name:    "a restored database without its policies",
		changes: []change{once("store/internal/pg/rights.go", "\tif !t.Sound {\n", "\tif false {\n")},
		pkg:     "./store", tests: "TestPrepareRepairsGrantsAndPolicies",
	},
	{
		name:    "a serving role that keeps what it was granted by hand",
		changes: []change{once("store/internal/pg/rights.go", "if !want[privilege] && !newer {", "if false {")},
		pkg:     "./store", tests: "TestPrepareRepairsGrantsAndPolicies",
	},
	{
		name:    "a restored database without its serving role",
		changes: []change{once("store/internal/pg/login.go", "\tif !s.RoleExists {\n\t\t_, err := conn.Exec", "\tif false {\n\t\t_, err := conn.Exec")},
		pkg:     "./store", tests: "TestARestoredDumpServesBehindItsWalls",
	},
	{
		name:    "a start with any secret key",
		changes: []change{once("cmd/purser/secret_check.go", "len(recorded) > 0 && len(unknown) == len(recorded):", "false:")},
		pkg:     "./cmd/purser", tests: "TestADatabaseKnowsItsSecretKey",
	},
}

// Bugs in the walls between the sandboxes of applications, and in what one of them may
// use up.
var sandboxMutants = []mutant{
	{
		name:    "sandbox objects of all applications are loaded",
		changes: []change{once("store/payments/sandbox_objects.go", "FROM sandbox_objects WHERE app_id = $1 AND key = t.key OFFSET 0", "FROM sandbox_objects WHERE $1::uuid IS NOT NULL AND key = t.key OFFSET 0")},
		pkg:     "./store", tests: "TestStatementsKeepTheRules",
	},
	{
		name:    "sandbox objects refer to those of other applications",
		changes: []change{once("store/payments/sandbox_objects.go", "FROM sandbox_objects WHERE app_id = $1 AND key = r.key OFFSET 0", "FROM sandbox_objects WHERE $1::uuid IS NOT NULL AND key = r.key OFFSET 0")},
		pkg:     "./store", tests: "TestStatementsKeepTheRules",
	},
	{
		name: "sandbox objects have no policy",
		changes: []change{
			once("migrations/20261115000024_sandbox_rows.tx.up.sql", "ALTER TABLE sandbox_objects FORCE ROW LEVEL SECURITY;", "SELECT 1;"),
			once("migrations/20261115000024_sandbox_rows.tx.up.sql", "ALTER TABLE sandbox_objects ENABLE ROW LEVEL SECURITY;", "SELECT 1;"),
			once("store/internal/pg/rights.go", "if !t.Enabled {", "if !t.Enabled && t.Name != \"sandbox_objects\" {"),
		},
		pkg: "./store", tests: "TestRowLevelSecurity",
	},
	{
		name:    "a sandbox key opens every application",
		changes: []change{once("payments/sandbox/keys.go", "if err != nil || !hmac.Equal([]byte(shown), []byte(keyMAC(s.options.Secret, name))) {", "if err != nil || shown == \"\" {")},
		pkg:     "./payments/sandbox", tests: "TestAuthentication",
	},
	{
		name:    "an API key steers the sandbox of another application",
		changes: []change{once("payments/sandbox/control.go", "if err != nil || app != owner {", "if err != nil {")},
		pkg:     "./payments/sandbox", tests: "TestControlAccess",
	},
	{
		name:    "a live application is admitted to the sandbox",
		changes: []change{once("cmd/purser/payments.go", "if err != nil || application.Live {", "if err != nil && application.Live {")},
		pkg:     "./cmd/purser", tests: "TestSandboxAccess",
	},
	{
		name:    "requests to the sandbox have no rate limit",
		changes: []change{once("payments/sandbox/keys.go", "\tif wait <= 0 {\n", "\tif true {\n")},
		pkg:     "./payments/sandbox", tests: "TestRequestsPastTheRateAreRefusedAsStripeDoes",
	},
	{
		name:    "reads of one application use all connections of the sandbox",
		changes: []change{once("payments/sandbox/accounts.go", "const maxReads = 2\n", "const maxReads = 200\n")},
		pkg:     "./payments/sandbox", tests: "TestReadsOfOneAccountUseTwoConnections",
	},
	{
		name:    "a jump of the sandbox's clock is one transaction",
		changes: []change{once("payments/sandbox/engine/clock.go", "const maxFired = 50\n", "const maxFired = 1 << 30\n")},
		pkg:     "./payments/sandbox", tests: "TestAFarJumpOfTheClockFiresTimersInBoundedTransactions",
	},
}
