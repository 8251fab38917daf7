// Package cashier runs operations at the payment provider and applies what it reports.
//
// What it is: synchronisation of plans, changes and cancellations of subscriptions,
// hosted checkouts, the portal, webhooks, and the jobs that finish what a crash, a
// lost webhook or a provider outage has interrupted.
//
// What always holds: an operation is stored with all its parameters before the first
// call; no transaction is open during a call; an operation holds its identity's lease,
// and its results are stored only while the lease is valid; every report of the
// provider is applied by the same function; a webhook only triggers a read and its
// content is never trusted.
//
// What it is not: a decision. What a request means, and what follows from a report, is
// in billing; storage is the store's.
package cashier
