package main

// Bugs in what a start restores and refuses.
var startMutants = []mutant{
	{
		name:    "a restored database without its policies",
		changes: []change{once("store/rights.go", "\tif !t.Sound {\n", "\tif false {\n")},
		pkg:     "./store", tests: "TestPrepareRepairsGrantsAndPolicies",
	},
	{
		name:    "a serving role that keeps what it was granted by hand",
		changes: []change{once("store/rights.go", "if !want[privilege] && !newer {", "if false {")},
		pkg:     "./store", tests: "TestPrepareRepairsGrantsAndPolicies",
	},
	{
		name:    "a restored database without its serving role",
		changes: []change{once("store/login.go", "\tif !s.RoleExists {\n\t\t_, err := conn.Exec", "\tif false {\n\t\t_, err := conn.Exec")},
		pkg:     "./store", tests: "TestARestoredDumpServesBehindItsWalls",
	},
	{
		name:    "a start with any secret key",
		changes: []change{once("cmd/purser/secret_check.go", "len(recorded) > 0 && len(unknown) == len(recorded):", "false:")},
		pkg:     "./cmd/purser", tests: "TestADatabaseKnowsItsSecretKey",
	},
}
