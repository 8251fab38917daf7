package main

// Bugs in usage statistics.
var rollupMutants = []mutant{
	{
		name:    "a suspended machine records what rollups have passed",
		changes: []change{once("store/usage_track.go", "slices.Compare(first.TransactionID[:], oldest[:]) >= 0", "slices.Compare(first.TransactionID[:], oldest[:]) >= -1")},
		pkg:     "./store", tests: "TestAPausedMachineRecordsNoOldID",
	},
	{
		name:    "usage is final while a transaction can still insert some",
		changes: []change{once("metering/rollup/progress.go", "return p.Transaction != 0 && p.Transaction <= h.Oldest", "return p.Transaction != 0")},
		pkg:     "./metering/rollup", tests: "TestNothingAppearsBelowTheWatermark",
	},
	{
		name:    "usage is settled while a transaction can still insert some",
		changes: []change{once("store/rollups/settle.go", "if !p.Confirmed(horizon) && !(alone && p.Transaction != 0) {", "if _ = horizon; p.Transaction == 0 {")},
		pkg:     "./store", tests: "TestUsageWaitsForOpenTransactions",
	},
	{
		name:    "an advanced clock makes usage final that was decided before",
		changes: []change{once("metering/rollup/progress.go", "min(h.ClockOffset, p.ClockOffset)", "h.ClockOffset")},
		pkg:     "./metering/rollup", tests: "TestNothingAppearsBelowTheWatermark",
	},
	{
		name:    "a deduplicated event adds its quantity",
		changes: []change{once("store/rollups/add.go", "coalesce(sum(u.quantity) FILTER (WHERE u.deduplicated_from IS NULL), 0) AS quantity", "coalesce(sum(u.quantity), 0) AS quantity")},
		pkg:     "./store", tests: "TestUsageAddsUpToTheEvents",
	},
	{
		name:    "verification overlooks sums without events",
		changes: []change{once("store/verify/usage.go", "if _, known := want[k]; !known || want[k] != s {", "if _, known := want[k]; known && want[k] != s {")},
		pkg:     "./store", tests: "TestVerifyFindsWrongSums",
	},
	{
		name:    "values past the limit have no sum",
		changes: []change{once("metering/rollup/dimensions.go", "return OtherValue, true", "return \"\", false")},
		pkg:     "./store", tests: "TestUsageByPropertyAndEntity",
	},
	{
		name:    "a day has sums for any number of properties",
		changes: []change{once("metering/rollup/dimensions.go", "if properties >= MaxProperties {", "if properties > MaxProperties {")},
		pkg:     "./metering/rollup", tests: "TestValuesOfADayAreBounded",
	},
	{
		name:    "a day is added up before it is final",
		changes: []change{once("store/rollups/days.go", "s.Days, end, selectFirstHour", "s.Days, metering.DayOf(end).End, selectFirstHour")},
		pkg:     "./store", tests: "TestUsageByDayIsThatOfItsHours",
	},
	{
		name:    "the hours of a day that was added up count again",
		changes: []change{once("metering/rollup/buckets.go", "p.Hours = extend(p.Hours, to, end)", "p.Hours = extend(p.Hours, from, end)")},
		pkg:     "./metering/rollup", tests: "TestRangesAreSplitIntoDaysAndHours",
	},
	{
		name:    "hours that a day has too many of stay in its bucket",
		changes: []change{once("store/rollups/query.go", "AND x.hour >= r.first AND x.hour < r.last OFFSET 0) l", "AND x.hour >= r.last AND x.hour < r.last OFFSET 0) l")},
		pkg:     "./store", tests: "TestUsageByTheDaysOfAZone",
	},
	{
		name:    "usage is read into memory beyond a page",
		changes: []change{once("store/rollups/query.go", "LIMIT @limit", "LIMIT 1000 * @limit")},
		pkg:     "./store", tests: "TestUsageAddsUpToTheEvents",
	},
	{
		name:    "usage by customer is read into memory beyond a page",
		changes: []change{once("store/rollups/query.go", "LIMIT $12", "LIMIT 1000 * $12")},
		pkg:     "./store", tests: "TestUsageAddsUpToTheEvents",
	},
	{
		name:    "a page of usage begins in the bucket after",
		changes: []change{once("store/rollups/query.go", `"after_bucket": rest.Find(after.Start) + 1`, `"after_bucket": q.Buckets.Find(after.Start) + 1`)},
		pkg:     "./store", tests: "TestUsageByTheDaysOfAZone",
	},
	{
		name:    "a chart adds up any number of groups",
		changes: []change{once("web/support/usage_input.go", "if len(found.Rows) > maxUsageRows {", "if false {")},
		pkg:     "./web", tests: "TestUsageOfTooManyFeatures",
	},
	{
		name:    "only the first features of a day are packed",
		changes: []change{once("store/rollups/values.go", "range slices.Chunk(features, packedFeatures)", "range slices.Chunk(features[:1], packedFeatures)")},
		pkg:     "./store", tests: "TestLargestValuesAreThoseOfTheRows",
	},
	{
		name:    "a group without events is listed",
		changes: []change{once("store/rollups/query.go", "HAVING sum(t.events) <> 0", "HAVING sum(t.events) IS NOT NULL")},
		pkg:     "./store", tests: "TestUsageByTheDaysOfAZone",
	},
	{
		name:    "the others of a day have the largest values too",
		changes: []change{once("store/rollups/largest.go", "others = others.Without(own)", "_ = others.Without(own)")},
		pkg:     "./store", tests: "TestLargestValuesAreThoseOfTheRows",
	},
	{
		name:    "payments of a day are added up while more may come",
		changes: []change{once("store/rollups/revenue.go", "max(0, s.Until-paymentDelay)", "max(0, s.Until)")},
		pkg:     "./store", tests: "TestRevenueOfFinalDays",
	},
	{
		name:    "payments of days that were added up count again",
		changes: []change{once("store/rollups/revenue.go", "{Start: days.End, End: to}}", "{Start: days.Start, End: to}}")},
		pkg:     "./store", tests: "TestRevenueOfFinalDays",
	},
	{
		name:    "revenue is added up while a test clock is ahead",
		changes: []change{once("store/rollups/revenue.go", "horizon.ClockOffset != 0", "horizon.ClockOffset < 0")},
		pkg:     "./store", tests: "TestRevenueOfFinalDays",
	},
	{
		name:    "days of revenue are not compared with their payments",
		changes: []change{once("store/verify/usage.go", "from, p.usage.revenue, maxDifferences)", "from, from, maxDifferences)")},
		pkg:     "./store", tests: "TestRevenueOfFinalDays",
	},
	{
		name:    "days are not compared with their hours",
		changes: []change{once("store/verify/usage.go", "from, p.usage.days, maxDifferences)", "from, from, maxDifferences)")},
		pkg:     "./store", tests: "TestUsageByDayIsThatOfItsHours",
	},
	{
		name:    "values of a day are packed before it is final",
		changes: []change{once("store/rollups/values.go", "\t\tif s.Values >= end {\n", "\t\tif end = metering.DayOf(end).End; s.Values >= end {\n")},
		pkg:     "./store", tests: "TestLargestValuesAreThoseOfTheRows",
	},
	{
		name:    "a packed day is read again from its rows",
		changes: []change{once("store/rollups/largest.go", "string(q.Dimension), packed, q.Buckets.End, d.all", "string(q.Dimension), q.Buckets.From(), q.Buckets.End, d.all")},
		pkg:     "./store", tests: "TestLargestValuesAreThoseOfTheRows",
	},
	{
		name:    "values are only added up by feature",
		changes: []change{once("store/rollups/values.go", "together.add(packGroup{credit: g.credit}, value, found)", "p.add(g, value, rollup.Sums{})")},
		pkg:     "./store", tests: "TestLargestValuesAreThoseOfTheRows",
	},
	{
		name:    "the largest values are those by events alone",
		changes: []change{once("store/rollups/largest.go", "{byEvents, byCharge} {", "{byEvents, byEvents} {")},
		pkg:     "./store", tests: "TestLargestValuesAreThoseOfTheRows",
	},
	{
		name:    "packed values are not compared with their rows",
		changes: []change{once("store/verify/values.go", "for ; from < p.usage.values; from += 24 * rollup.Hour {", "for ; from < 0; from += 24 * rollup.Hour {")},
		pkg:     "./store", tests: "TestLargestValuesAreThoseOfTheRows",
	},
	{
		name:    "a pack loses the upper half of a large sum",
		changes: []change{once("metering/rollup/pack.go", "return metering.TotalOf(r.uvarint(), lo)", "return metering.TotalOf(0*r.uvarint(), lo)")},
		pkg:     "./metering/rollup", tests: "TestPackedValuesAreUnpacked",
	},
	{
		name:    "a boundary is proposed with the end of a snapshot, which a running transaction may have",
		changes: []change{once("store/rollups/settle.go", "pg_current_xact_id()::text::bigint", "pg_snapshot_xmax(pg_current_snapshot())::text::bigint")},
		pkg:     "./store", tests: "TestDaysWaitForOpenTransactions",
	},
}
