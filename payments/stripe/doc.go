// Package stripe calls the API of Stripe, and of the sandbox, which behaves the same.
//
// What it is: a client for one account. Its methods are the calls that billing needs,
// each with exactly the parameters that it needs; results are returned as billing's
// types. Verify checks that a webhook comes from the account.
//
// What always holds: a call goes to Stripe or to the sandbox and nowhere else, within
// the caller's deadline; every call that changes something carries an idempotency key
// that the caller chose; an error is a *Problem with one of a few kinds.
//
// What it is not: a decision. What to call, when to retry and what follows from the
// result is up to cashier and billing.
package stripe
