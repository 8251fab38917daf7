// Package queue is what an application does later: its jobs, who runs them, and when a
// node has to look.
//
// What it is: App, the jobs and leases of one application; Queues, what nodes ask over
// all applications, and their periodic tasks; Tx, a transaction that may enqueue jobs.
//
// What always holds: a job is a row of the transaction that needs it, due by the
// application's clock; it stays until it is finished under its lease; a transaction that
// changes the queue ends with ScheduleWake. Leases go by the database's clock, and each
// holder has a higher number than the one before.
//
// What it is not: a runner. Package jobs claims and runs, and the packages above say
// what a job does.
package queue
