package main

// Bugs in how a node reads the time, keeps deadlines and judges its database.
var databaseMutants = []mutant{
	{
		name:    "a wallet that a failover lost comes back with its balance",
		changes: []change{once("store/usage_optimistic.go", "if m.server != server {", "if m.server == -1 {")},
		pkg:     "./store", tests: "TestALostWalletDoesNotComeBack",
	},
	{
		name:    "deposits that wait for the audit log hold all connections",
		changes: []change{once("store/internal/pg/tx.go", "a.inTurn = !a.By.IsZero()", "a.inTurn = a.inTurn && !a.By.IsZero()")},
		pkg:     "./store", tests: "TestDepositsThatWaitForTheAuditLogLeaveRoomToOthers",
	},
	{
		name:    "any number of callers go on at once",
		changes: []change{once("tenancy/turns/turns.go", "make(chan struct{}, t.atOnce)", "make(chan struct{}, t.atOnce+50)")},
		pkg:     "./tenancy/turns", tests: "TestCallersOfAKeyWaitForEachOther|TestOtherKeysDoNotWait",
	},
	{
		name:    "a standby that lacks changes numbers others like them",
		changes: []change{once("store/internal/pg/version.go", "return 1 + rand.Int64N(maxVersionStep)", "return 1 + rand.Int64N(1)*maxVersionStep")},
		pkg:     "./store", tests: "TestANodeThatRemembersLostChangesReadsAgain",
	},
	{
		name:    "the node's clock instead of the database's",
		changes: []change{once("store/internal/pg/clock.go", "\treturn r.at(monotonic) / 1e6, nil\n", "\treturn wall / 1e6, nil\n")},
		pkg:     "./store", tests: "TestNodesWithWrongClocksAgreeOnTime",
	},
	{
		name:    "a clock that is trusted after the machine was suspended",
		changes: []change{once("store/internal/pg/clock.go", "return (wall - monotonic).Abs() > maxClockJump", "return false")},
		pkg:     "./store", tests: "TestNothingIsChargedWhileTheTimeIsUnknown",
	},
	{
		name:    "a clock that is trusted however old its measurement is",
		changes: []change{once("store/internal/pg/clock.go", "\tcase elapsed > maxClockAge:\n", "\tcase false:\n")},
		pkg:     "./store", tests: "TestNothingIsChargedWhileTheTimeIsUnknown",
	},
	{
		name:    "events are written whatever time they were decided for",
		changes: []change{once("store/usage_insert.go", "- $2::bigint) < $4::bigint)::int", "- $2::bigint) < $4::bigint OR true)::int")},
		pkg:     "./store", tests: "TestAPausedMachineChargesNothingByItsStoppedClock",
	},
	{
		name:    "checks are answered whatever time they were decided for",
		changes: []change{once("store/usage_clock.go", "b.databaseTime != 0 && (", "b.databaseTime < 0 && (")},
		pkg:     "./store", tests: "TestAPausedMachineChargesNothingByItsStoppedClock",
	},
	{
		name:    "a try that outlasts the deadline of its uses",
		changes: []change{once("store/usage_track.go", "limit.Before(last) {\n", "limit.After(last) {\n")},
		pkg:     "./store", tests: "TestASilentDatabaseIsAnsweredByTheDeadline",
	},
	{
		name: "a use that was refused for lack of time is charged",
		changes: []change{
			once("store/usage_track.go", "\t\tcase !p.claim():\n\t\tcase now.Before(p.deadline) && (", "\t\tcase !p.claim() && false:\n\t\tcase (now.Before(p.deadline) || p.lastErr == nil) && ("),
			once("store/usage_track.go", "\treturn last\n", "\treturn time.Now().Add(u.batchTimeout)\n"),
		},
		pkg: "./store", tests: "TestAnExpiredUseIsAnsweredWhileItsBatchGoesOn",
	},
	{
		name:    "the hot path does not borrow connections",
		changes: []change{once("store/usage_conns.go", "\t\tif pg.SQLState(err) == pg.TooManyConnections {\n", "\t\tif false {\n")},
		pkg:     "./store", tests: "TestFewConnectionsDoNotStopCharging",
	},
	{
		name:    "ready without a write",
		changes: []change{once("store/readiness.go", "\tif err != nil {\n\t\treturn pg.Unready(\"the database does not take writes\", err)\n", "\tif false {\n\t\treturn pg.Unready(\"the database does not take writes\", err)\n")},
		pkg:     "./store", tests: "TestReadinessIsProvenByAWrite",
	},
	{
		name:    "a migration behind a backup blocks all readers of its table",
		changes: []change{once("store/internal/pg/migrate.go", "Milliseconds(LockWait)", "\"0\"")},
		pkg:     "./store", tests: "TestMigrate",
	},
	{
		name:    "a migration gives up at the first locked table",
		changes: []change{once("store/internal/pg/locks.go", "if !WasRolledBack(err) {", "if true {")},
		pkg:     "./store", tests: "TestMigrate",
	},
	{
		name:    "a page of deposits reads the whole journal of a wallet",
		changes: []change{once("store/internal/ledger/deposits.go", "ORDER BY seq DESC LIMIT $6", "ORDER BY seq DESC LIMIT 1000 * $6")},
		pkg:     "./store", tests: "TestDeposits",
	},
	{
		name:    "deposits behind many other entries are left out",
		changes: []change{once("store/internal/ledger/deposits.go", "next = rest[0] + 1", "next = 0")},
		pkg:     "./store", tests: "TestDeposits",
	},
	{
		name:    "one application gets every export of a node",
		changes: []change{once("api/export.go", "s.exports.Enter(scope.AppID, 1)", "s.exports.Enter(ids.New(), 1)")},
		pkg:     "./api", tests: "TestExportsAreLimited",
	},
	{
		name:    "an export holds up the stop of its server",
		changes: []change{once("api/export.go", "	if w.stopped() {\n", "	if false {\n")},
		pkg:     "./api", tests: "TestExportsEndWhenTheServerStops",
	},
	{
		name:    "handlers go on while the pools close",
		changes: []change{once("cmd/purser/serve.go", "limit, err), server.Close())", "limit, err), nil)")},
		pkg:     "./cmd/purser", tests: "TestRequestsThatOutlastTheStopAreCutOff",
	},
}
