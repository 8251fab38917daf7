// Package ledger is what the packages below store share of wallets: the lock of a
// wallet, its balances, and the one function that changes a balance.
//
// What it is: Tx, a transaction that also enqueues jobs, locks wallets and posts to the
// journal; the stored form of plans, terms and sales, and the references that keep
// prices as promised.
//
// What always holds: every writer locks wallets through one statement, in the order of
// their identities; a balance changes only together with its journal entry.
//
// What it is not: a handle. Transactions begin in the packages above.
package ledger
