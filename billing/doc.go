// Package billing decides what a plan may contain, what a request to change a
// subscription means, and what follows from the payment provider's reports.
//
// What it is: plans, the terms that a subscription copies from its plan, subscriptions
// and their changes, payments and the credits that they grant, and operations at the
// provider, as plain values and pure functions. Project applies the provider's state
// to a subscription, ApplySession to a top-up, Reverse claws credits back, and Recover
// decides how to resume an operation after a crash.
//
// What always holds: plan, period and terms change, and credits are granted, only for
// a payment that the provider confirms, and once for each payment object. Clawbacks
// are an absolute share of the granted amount, so reports in any order and number end
// in the same balance. Applying a report twice changes nothing, and an ended
// subscription stays ended.
//
// What it is not: I/O. Nothing here calls the provider, knows its wire format, reads a
// clock or stores anything; the packages below it and the store do that.
package billing
