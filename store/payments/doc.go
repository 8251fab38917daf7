// Package payments stores what Purser and the payment provider agree on: accounts,
// operations, subscriptions, payments, and the accounts of the sandbox.
//
// What it is: App, what is sold and paid in one application; Accounts, its accounts at
// the provider with their customers and webhooks; SandboxAccounts, the provider that
// runs in the server.
//
// What always holds: an operation is stored before the provider is called; only the
// provider's state changes a subscription or credits a payment, under the fence of a
// lease; a payment is credited once; a subscription changes under its wallet's lock and
// moves the wallet's version.
//
// What it is not: a client of the provider, and no place for rules. Package
// payments/cashier talks to the provider, package billing decides what follows.
package payments
