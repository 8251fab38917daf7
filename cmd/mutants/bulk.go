package main

// Bugs in batches and groups of events.
var bulkMutants = []mutant{
	{
		name:    "an event waits for the locks of others in its batch",
		changes: []change{once("store/usage_track.go", "\tif len(rest) > 0 {\n\t\tanswerOthers", "\tif len(rest) > len(requests) {\n\t\tanswerOthers")},
		pkg:     "./store", tests: "TestEventsDoNotWaitForTheLocksOfOthers",
	},
	{
		name:    "an event is answered by what was read without locks",
		changes: []change{once("store/usage_batcher.go", "\tresetAll(rest)\n", "\t_ = rest\n")},
		pkg:     "./store", tests: "TestEventsAreNotAnsweredByAPrefetch",
	},
	{
		name:    "checks for other entities grow a cached wallet without bound",
		changes: []change{once("store/usage_cache.go", "if known.keyedRows()+w.keyedRows() > maxKeyedRows {", "if known.keyedRows() < 0 {")},
		pkg:     "./store", tests: "TestChecksDoNotGrowACachedWallet",
	},
	{
		name:    "the rows of all cached wallets are not bounded",
		changes: []change{once("store/usage_cache.go", "for m.rows > m.maxRows {", "for m.rows < 0 {")},
		pkg:     "./store", tests: "TestCachedRowsAreBounded",
	},
	{
		name:    "only the first event of a batch keeps its properties",
		changes: []change{once("store/usage_properties.go", "\t\tif r.Properties == \"\" {\n", "\t\tif r.Properties == \"\" || wallet.Count > 0 {\n")},
		pkg:     "./store", tests: "TestPropertiesAreStoredWithTheirEvents",
	},
	{
		name:    "a group that waited too long is half recorded",
		changes: []change{once("store/usage_track.go", "first = p.group.members[0]", "first = p")},
		pkg:     "./store", tests: "TestAPausedMachineRecordsNoPartOfAGroup",
	},
	{
		name:    "a refused group is half applied",
		changes: []change{once("store/usage_bulk.go", "\tif refused >= 0 {\n\t\td := ", "\tif refused == 0 {\n\t\td := ")},
		pkg:     "./store", tests: "TestARefusedGroupChargesNothing",
	},
	{
		name:    "the alert of a refused group has a balance that never was",
		changes: []change{once("store/usage_bulk.go", "\t\t\td.After = w.state.Wallet.Balance(d.After.CreditID)\n", "")},
		pkg:     "./store", tests: "TestARefusedGroupAlertsWithTheBalanceOfTheWallet",
	},
	{
		name:    "a balance of the past is that of the last deposit",
		changes: []change{once("store/reports/history.go", "if pending[c.CreditID] && c.seq > last[c.CreditID].seq {", "if pending[c.CreditID] && c.seq < last[c.CreditID].seq {")},
		pkg:     "./store", tests: "TestBalancesAtEveryMoment",
	},
	{
		name:    "a balance of the past ends with its first range",
		changes: []change{once("store/reports/history.go", "return charged[credit] || last[credit].seq > low", "return true")},
		pkg:     "./store", tests: "TestBalancesAtEveryMoment",
	},
	{
		name:    "a group is divided between two transactions",
		changes: []change{once("store/usage_bulk.go", "\t\tpoint += len(unitAt(requests, point))\n", "\t\tpoint++\n")},
		pkg:     "./store", tests: "TestAPoisonItemOfABatchFailsAlone",
	},
	{
		name:    "a group with some recorded events is charged for the others",
		changes: []change{once("metering/group.go", "\tif i := state.partlyRecorded(usages); i >= 0 {", "\tif i := state.partlyRecorded(usages); i > len(usages) {")},
		pkg:     "./store", tests: "TestARefusedGroupChargesNothing",
	},
	{
		name:    "items of a wallet are decided out of order",
		changes: []change{once("store/usage_lane.go", "cache: newUsageCache(max(1, maxBulkWallets/bulks)), ordered: true}", "cache: newUsageCache(max(1, maxBulkWallets/bulks))}")},
		pkg:     "./store", tests: "TestItemsOfAWalletAreDecidedInOrder",
	},
	{
		name:    "a batch is queued in part",
		changes: []change{once("store/usage_queue.go", "waiting+more <= q.limits.queuedPerApp", "waiting <= q.limits.queuedPerApp")},
		pkg:     "./store", tests: "TestABatchIsQueuedWholeOrNotAtAll",
	},
	{
		name:    "one lane takes its part of a refused batch",
		changes: []change{once("store/usage_batcher.go", "\t\tif room && len(shares[i]) > 0 {\n", "\t\tif len(shares[i]) > 0 && l.queue.hasRoom(shares[i][0].Scope.AppID, len(shares[i])) {\n")},
		pkg:     "./store", tests: "TestABatchOverTwoLanesIsQueuedWholeOrNotAtAll",
	},
	{
		name:    "a repeated event id of a batch is decided in two lanes at once",
		changes: []change{once("store/usage_bulk.go", "if len(u.bulks) == 1 || repeatsEventID(requests) {", "if len(u.bulks) == 1 {")},
		pkg:     "./store", tests: "TestARepeatedIDBelongsToTheFirstItemAcrossLanes",
	},
	{
		name:    "bulk lanes run at once beside single events",
		changes: []change{once("store/usage_lane.go", "\tif !u.store.db.Distributed && u.lastSingle.isRecent() {\n", "\tif u.singles == nil {\n")},
		pkg:     "./store", tests: "TestBulkLanesTakeTurnsBesideSingleEvents",
	},
	{
		name:    "a node that closes goes on accepting in a lane",
		changes: []change{once("store/usage.go", "\tfor _, l := range u.batchers() {\n\t\tl.refuse()\n\t}\n", "")},
		pkg:     "./store", tests: "TestCloseAnswersEverybody",
	},
	{
		name:    "applications of two workers share a lane",
		changes: []change{once("store/usage_lane.go", "return place*each + ", "return ")},
		pkg:     "./store", tests: "TestDistribute",
	},
	{
		name:    "single events wait for each other's wallets",
		changes: []change{once("store/usage_lane.go", "\tlanes := u.lanes * u.places.Count()\n\tfor range lanes {\n", "\tlanes := u.places.Count()\n\tfor range lanes {\n")},
		pkg:     "./store", tests: "TestSingleLanesRunAtTheSameTime",
	},
	{
		name:    "a repeated event id makes a wallet",
		changes: []change{once("store/usage_batch.go", "\t\t\t\tempty.Apply(u.decision) // a later request may repeat its event id\n", "")},
		pkg:     "./store", tests: "TestARepeatedIDMakesNoWallet",
	},
	{
		name:    "a batch that is cut is charged again",
		changes: []change{once("store/usage_bulk.go", "\t\trequests[i] = &request{Usage: uses[i]}\n", "\t\trequests[i] = &request{Usage: uses[i]}\n\t\trequests[i].EventID += requests[i].TransactionID.String()\n")},
		pkg:     "./store", tests: "TestACutBatchCanBeSentAgain",
	},
	{
		name:    "a group whose batch panicked is answered as accepted",
		changes: []change{once("store/usage_bulk.go", "\tif head.err != nil {\n\t\treturn nil, 0, head.err\n\t}\n", "")},
		pkg:     "./store", tests: "TestPanicReleasesEveryCaller",
	},
}
