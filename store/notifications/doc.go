// Package notifications keeps what an application tells other systems: the feed of its
// notifications, in the order of their numbers.
//
// What it is: App, the notifications of one application. Writers of other packages
// insert a notification with pg.Tx.Notify, in the transaction of the change; a
// sequencer (Number) gives committed ones their numbers.
//
// What always holds: numbers are given under the lock of the feed's row and only to
// committed rows, so they have no gap, and a reader that is past a number never misses
// an earlier one. A notification is numbered once.
//
// What it is not: a place where notifications are made. The package that changes
// something says so.
package notifications
