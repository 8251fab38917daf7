// Package backup writes the database to a file and loads it from one, with pg_dump and
// pg_restore.
//
// What it is: the two programs run with the address that the store uses, their archive (the
// custom format) piped through this process. A pg_restore that is newer than the server writes
// a script for psql, without the settings that the server does not know.
//
// What always holds: a file appears under its name when it is complete and on disk; a load
// is one transaction. The pipe ends with this process, so a program that lost it stops and
// neither writes a file nor commits. No password is in a command line.
//
// What it is not: a format of its own. pg_restore can read every archive.
package backup
