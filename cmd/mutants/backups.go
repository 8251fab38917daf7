package main

// Bugs in backups and in what a restore lets a server see.
var backupMutants = []mutant{
	{
		name:    "a restored database with differences is served",
		changes: []change{once("cmd/purser/backup.go", "case open && accept:", "case open && (accept || true):")},
		pkg:     "./cmd/purser", tests: "TestRestoreRefuses",
	},
	{
		name:    "a restore into a database with tables",
		changes: []change{once("store/internal/pg/restore.go", "if !marked && tables > 0 {", "if false {")},
		pkg:     "./cmd/purser", tests: "TestRestoreRefuses",
	},
	{
		name:    "a restore continues with the rows of another file",
		changes: []change{once("store/internal/pg/restore.go", "if tables > 0 && !bytes.Equal(before, sum) {", "if tables > 0 && !bytes.Equal(sum, sum) {")},
		pkg:     "./cmd/purser", tests: "TestRestoreRefuses",
	},
	{
		name:    "a restored database has no statistics of the planner",
		changes: []change{once("store/internal/pg/restore.go", "r.exec(ctx, `ANALYZE`)", "r.exec(ctx, `SELECT 1`)")},
		pkg:     "./cmd/purser", tests: "TestABackupIsRestoredAsTheGuideSays",
	},
	{
		name:    "a backup replaces a file",
		changes: []change{once("store/backup/backup.go", "\tcase err == nil:\n", "\tcase false:\n")},
		pkg:     "./cmd/purser", tests: "TestBackupRefuses",
	},
	{
		name:    "a backup has its name before it is whole",
		changes: []change{once("store/backup/backup.go", "flock.Try(path+partialSuffix, flock.Exclusive)", "flock.Try(path, flock.Exclusive)")},
		pkg:     "./cmd/purser", tests: "TestAKilledBackupLeavesNoFile",
	},
	{
		name:    "a backup without the rows that its login does not see",
		changes: []change{once("store/internal/pg/restore.go", "\tcase !s.PassesWalls:\n", "\tcase false:\n")},
		pkg:     "./cmd/purser", tests: "TestBackupRefuses",
	},
}
