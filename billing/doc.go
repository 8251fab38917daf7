// Package billing decides what a plan may say, what a request to change a
// subscription means, and what follows from what the payment provider reports.
//
// What it is: plans, the terms that a subscription copies from its plan,
// subscriptions and their changes, payments and the credits that they brought,
// and the intents of calls to the provider, as plain values and pure functions.
// Project takes a subscription to where the provider's word puts it, Settle does
// so for a top-up, Reverse takes credits back, and Recover says how to go on
// after a crash.
//
// What always holds: plan, period and terms move, and credits come in, only for
// a payment that the provider confirms, and once for each money object. What is
// taken back is an absolute share of what came in, so reports in any order and
// number end in the same balance. The same report twice changes nothing, and
// what has ended never comes back to life.
//
// What it is not: a conversation. Nothing here calls the provider, knows its
// wire format, reads a clock or keeps anything; the rooms below it and the store
// do that.
package billing
