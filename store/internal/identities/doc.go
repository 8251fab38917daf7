// Package identities gives wallets other identities: by a rename, or by an erasure, which
// leaves none that says anything about a customer.
//
// What it is: App, whose methods store.App offers; the stored changes, and the job that
// moves or deletes what was written by an old identity.
//
// What always holds: a change locks the wallet and holds the leases of its identities; the
// wallet's version and the application's epoch advance with it, so that no node decides by
// a cached identity; the journal and its sums stay.
//
// What it is not: what payments keep of a customer, which package payments redacts.
package identities
