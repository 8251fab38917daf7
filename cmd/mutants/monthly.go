package main

// Bugs in monthly files.
var monthlyMutants = []mutant{
	{
		name:    "files of a newer database are continued",
		changes: []change{once("cmd/purser/export.go", "if account.Through() > wallet.LastSeq {", "if false {")},
		pkg:     "./cmd/purser", tests: "TestFilesOfANewerDatabaseAreNotContinued",
	},
	{
		name:    "an entry of the next month ends no month",
		changes: []change{once("cmd/purser/export.go", "if entry.CreatedAt >= month.End() {", "if false {")},
		pkg:     "./cmd/purser", tests: "TestMonthlyFilesHaveEveryEntryOnce",
	},
	{
		name:    "entries that were never verified are exported",
		changes: []change{once("cmd/purser/export.go", "if entry.Seq > wallet.Sealed {", "if false {")},
		pkg:     "./cmd/purser", tests: "TestMonthlyFilesHaveEveryEntryOnce",
	},
	{
		name:    "a wallet with more entries than one read has loses the rest",
		changes: []change{once("cmd/purser/export.go", "	return false, nil\n}\n", "	return true, nil\n}\n")},
		pkg:     "./cmd/purser", tests: "TestMonthlyFilesHaveEveryEntryOnce",
	},
	{
		name:    "a changed file of wallets is continued",
		changes: []change{once("cmd/purser/export_files.go", "if hex.EncodeToString(hash.Sum(nil)) != previous.WalletsSHA256 {", `if hex.EncodeToString(hash.Sum(nil)) == "" {`)},
		pkg:     "./cmd/purser", tests: "TestChangedMonthlyFilesAreFound",
	},
	{
		name:    "a balance that does not follow is exported",
		changes: []change{once("metering/monthly/account.go", "delta.Add(delta, before.net()).Cmp(after.net()) != 0", "false")},
		pkg:     "./metering/monthly", tests: "TestAnEntryThatDoesNotFollowIsRefused",
	},
	{
		name:    "a month does not name the one before",
		changes: []change{once("metering/monthly/write.go", "m.Previous, err = before.Sum()", "m.Previous, err = \"\", nil")},
		pkg:     "./metering/monthly", tests: "TestAManifestNamesTheOneBefore",
	},
}
