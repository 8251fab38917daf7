// Package stripe speaks with Stripe, and with the sandbox, which answers alike.
//
// What it is: a client for one account. Its methods are the calls that billing
// needs, each with exactly the parameters that it needs; what comes back is
// told in billing's words. Verify checks that a webhook comes from the account.
//
// What always holds: a call goes to Stripe or to the sandbox and nowhere else,
// within the caller's time; what changes something carries an idempotency key
// that the caller chose; an error is a *Problem with one of a few kinds.
//
// What it is not: a decision. What to ask for, when to repeat it and what
// follows from the answer is the cashier's and billing's.
package stripe
