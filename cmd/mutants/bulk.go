package main

// Bugs in batches and groups of events.
var bulkMutants = []mutant{
	{
		name:    "only the first event of a batch keeps its properties",
		changes: []change{once("store/usage_properties.go", "\t\tif r.Properties == \"\" {\n", "\t\tif r.Properties == \"\" || wallet.Count > 0 {\n")},
		pkg:     "./store", tests: "TestPropertiesAreStoredWithTheirEvents",
	},
	{
		name:    "a refused group is half applied",
		changes: []change{once("store/usage_bulk.go", "\tif refused >= 0 {\n\t\tmembers[refused]", "\tif refused == 0 {\n\t\tmembers[refused]")},
		pkg:     "./store", tests: "TestARefusedGroupChargesNothing",
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
		changes: []change{once("store/usage_lane.go", "cache: newUsageCache(maxBulkWallets), ordered: true}", "cache: newUsageCache(maxBulkWallets)}")},
		pkg:     "./store", tests: "TestItemsOfAWalletAreDecidedInOrder",
	},
	{
		name:    "a batch is queued in part",
		changes: []change{once("store/usage_queue.go", "waiting+len(requests) > q.limits.queuedPerApp", "waiting > q.limits.queuedPerApp")},
		pkg:     "./store", tests: "TestABatchIsQueuedWholeOrNotAtAll",
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
