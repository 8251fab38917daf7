// Package sandbox is a payment provider inside the server, for applications without
// one. It implements the part of Stripe's API that billing uses, so that the real
// client works against it.
//
// What it is: the HTTP interface of Stripe's API, version 2024-06-20, with one account
// per application; the hosted pages for checkout, authentication, invoices and the
// billing portal; a clock that can be advanced; signed webhooks; and fault injection
// for tests.
//
// What always holds: a change of an account and its events commit together, one change
// per application at a time; a webhook is sent after its change is committed, and
// retried until it is accepted or its attempts are used up; a key reaches the account of
// its own application only; no real money moves and no request leaves this machine.
//
// What it is not: for live applications, which it refuses, nor aware of plans and
// credits: like Stripe, it knows products and prices only.
package sandbox
