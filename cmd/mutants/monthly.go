package main

// Bugs in monthly files.
var monthlyMutants = []mutant{
	bug("files of a newer database are continued", "./cmd/purser", "TestFilesOfANewerDatabaseAreNotContinued",
		once("cmd/purser/export.go", "if account.Through() > wallet.LastSeq {", "if false {")),
	bug("an entry of the next month ends no month", "./cmd/purser", "TestMonthlyFilesHaveEveryEntryOnce",
		once("cmd/purser/export.go", "if entry.CreatedAt >= month.End() {", "if false {")),
	bug("entries that were never verified are exported", "./cmd/purser", "TestMonthlyFilesHaveEveryEntryOnce",
		once("cmd/purser/export.go", "if entry.Seq > wallet.Sealed {", "if false {")),
	bug("a wallet with more entries than one read has loses the rest", "./cmd/purser", "TestMonthlyFilesHaveEveryEntryOnce",
		once("cmd/purser/export.go", "	return false, nil\n}\n", "	return true, nil\n}\n")),
	bug("a month has wallets from after it", "./cmd/purser", "TestMonthlyFilesHaveEveryEntryOnce",
		once("cmd/purser/export.go", "if accounts[i].Through() == 0 {", "if false {")),
	bug("an application that is not sealed ends the export of others", "./cmd/purser", "TestAnApplicationThatIsNotSealedKeepsNoOtherFromItsExport",
		once("cmd/purser/export.go", "if e.ends(ctx, scope, err) {", "if true {")),
	bug("a test clock makes any number of monthly files", "./cmd/purser", "TestMonthsOfATestClockWaitUntilTheyAreOver",
		once("cmd/purser/export.go", "e.db.Clock().Now(), e.before)", "e.db.Clock().Now()+100*30*86_400_000, e.before)")),
	bug("a changed file of wallets is continued", "./cmd/purser", "TestChangedMonthlyFilesAreFound",
		once("cmd/purser/export_files.go", "if hex.EncodeToString(hash.Sum(nil)) != previous.WalletsSHA256 {", `if hex.EncodeToString(hash.Sum(nil)) == "" {`)),
	bug("a balance that does not follow is exported", "./metering/monthly", "TestAnEntryThatDoesNotFollowIsRefused",
		once("metering/monthly/account.go", "delta.Add(delta, before.net()).Cmp(after.net()) != 0", "false")),
	bug("a wallet with entries of very many credits ends the export", "./metering/monthly", "TestAWalletMayHaveUsedEveryCredit",
		once("metering/monthly/check.go", "MaxLine = 2 << 20", "MaxLine = 64 << 10")),
	bug("a month does not name the one before", "./metering/monthly", "TestAManifestNamesTheOneBefore",
		once("metering/monthly/write.go", "m.Previous, err = before.Sum()", "m.Previous, err = \"\", nil")),
}
