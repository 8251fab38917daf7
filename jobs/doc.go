// Package jobs runs what happens later: the jobs of applications, and the periodic
// tasks of the installation.
//
// A job is a row of its application's queue (queue.Job), written in the transaction
// that needs it and due by the application's own clock. A package registers a Handler
// for each of its kinds; any number of nodes run them.
//
//	enqueue   in the caller's transaction; then Wake, so that this node runs it at once
//	claim     due rows are leased with SKIP LOCKED; leases go by the database's clock
//	run       the lease is renewed meanwhile; a node that dies loses it
//	finish    the claim is compared: a node that lost its lease stores nothing
//	fail      the error is stored and the job retried, less and less often
//
// What always holds: a job is removed only after its handler succeeded, and stays when
// it was requested again meanwhile. A handler may run twice, also on two nodes at once
// when one of them was suspended, so it has to be idempotent.
//
// Mails are no jobs: they belong to the installation and not to an application, so they
// have a table of their own (store.Outbox), which a periodic task empties (package mail).
//
// What it is not: a broker. Wake is a hint within one process; jobs that a woken
// node did not run are found by the sweep of any node within seconds.
package jobs
