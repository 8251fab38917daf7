package main

// Bugs in backups and in what a restore lets a server see.
var backupMutants = []mutant{
	bug("a restored database with differences is served", "./cmd/purser", "TestRestoreRefuses",
		once("cmd/purser/backup.go", "case open && accept:", "case open && (accept || true):")),
	bug("a running server serves a database that is being restored", "./store", "TestARunningServerWaitsForTheRestoreOfItsDatabase",
		once("store/internal/pg/db.go", "\t\tif o.Restoring {\n", "\t\tif true {\n")),
	bug("usage is charged in a database that is being restored", "./store", "TestARunningServerWaitsForTheRestoreOfItsDatabase",
		once("store/usage_conns.go", "\t\tif err := connected(ctx, conn); err != nil {\n", "\t\tif err := connected(ctx, conn); err != nil && false {\n")),
	bug("a restore into a database with tables", "./cmd/purser", "TestRestoreRefuses",
		once("store/internal/pg/restore.go", "if !marked && tables > 0 {", "if false {")),
	bug("a restore continues with the rows of another file", "./cmd/purser", "TestRestoreRefuses",
		once("store/internal/pg/restore.go", "if tables > 0 && !bytes.Equal(before, sum) {", "if tables > 0 && !bytes.Equal(sum, sum) {")),
	bug("a restored database has no statistics of the planner", "./cmd/purser", "TestABackupIsRestoredAsTheGuideSays",
		once("store/internal/pg/restore.go", "r.exec(ctx, `ANALYZE`)", "r.exec(ctx, `SELECT 1`)")),
	bug("a backup replaces a file", "./cmd/purser", "TestBackupRefuses",
		once("store/backup/backup.go", "\tcase err == nil:\n", "\tcase false:\n")),
	bug("a backup has its name before it is whole", "./cmd/purser", "TestAKilledBackupLeavesNoFile",
		once("store/backup/backup.go", "flock.TryPrivate(path+partialSuffix, flock.Exclusive)", "flock.TryPrivate(path, flock.Exclusive)")),
	bug("a backup is written where a link leads", "./cmd/purser", "TestBackupRefuses",
		once("store/embedded/flock/private.go", "syscall.O_NOFOLLOW, os.Lstat", "0, os.Stat")),
	bug("a backup is readable to all where a file was", "./cmd/purser", "TestABackupMovesAnEmbeddedDatabase",
		once("store/embedded/flock/private.go", "return l.file.Chmod(0o600)", "return nil")),
	bug("a backup without the rows that its login does not see", "./cmd/purser", "TestBackupRefuses",
		once("store/internal/pg/restore.go", "\tcase !s.PassesWalls:\n", "\tcase false:\n")),
}
