// Package notify has the rules of notifications: what an application tells other
// systems about its wallets, payments and keys.
//
// What it is: the types of notifications and their bodies, the numbering of a feed and
// of its endpoints, signatures, the schedule of deliveries, and which addresses a
// webhook may reach.
//
// What always holds: a feed's numbers have no gap, and the deliveries of an endpoint
// are linked by the number before each, so a receiver can tell that it missed one. A
// delivery is given up only by an endpoint that accepts others.
//
// What it is not: storage or a client. It is pure, as metering is.
package notify
