// Package flock lets processes of one machine take turns by a file.
//
// What it is: flock(2) on a file that is made when missing, exclusive or
// shared, with waiting that a context can end.
//
// What always holds: a lock ends with the last process that holds its open
// file, however that process ends, so no lock is stale; and a lock is held on
// the file that is at the path now, not on one that was removed.
//
// What it is not: a lock inside one goroutine, nor one across machines.
package flock
