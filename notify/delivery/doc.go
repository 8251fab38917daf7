// Package delivery numbers the notifications of applications.
//
// What it is: the jobs of notifications, on the queue of package jobs. The node that
// commits a notification numbers it at once; a periodic task numbers what a node that
// died has left.
//
// What always holds: it keeps no state. Everything that it does twice or late is as it
// would have been once and in time.
//
// What it is not: a rule. Package notify decides, store/notifications persists.
package delivery
