// Package embedded runs a private Postgres under Purser's data folder, so that
// a machine with Postgres's programs needs no other preparation.
//
// What it is: one cluster for a data folder, created on first use and shared by
// every Purser process that works on that folder. Start joins a running cluster
// or starts it, Stop ends it with its last user, and its users restart it when
// it dies. On disk:
//
//	<data folder>/postgres/             or the folder that postgres.location names
//	    cluster/                        the data of Postgres, owned by its user
//	    socket/                         where it listens; a link when the path is too long
//	    purser.conf                     our settings, written at every start
//	    postgres.log, postgres.log.1    at most about 16 MiB each
//	    start.lock                      held while a process creates, starts or stops it
//	    users.lock                      held, shared, by every user
//	    running.lock                    held by the processes of Postgres themselves
//
// What always holds: the cluster is durable, listens on a socket that only its
// own user and root can reach, and never runs as root. A process that may kill
// it holds start.lock and has checked that it is the last user; a process that may
// start it holds start.lock and has found running.lock free. Locks end with their
// holders, so kill -9 of anything, at any moment, leaves a state that the next
// Start can use.
//
// What it is not: a way to install or upgrade Postgres, nor a server for other
// machines. For either, use your own server.
package embedded
