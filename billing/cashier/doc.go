// Package cashier holds the conversation with the payment provider.
//
// What it is: plans that are told to the provider, changes and cancellations of
// subscriptions, hosted checkouts, the portal, webhooks, and the jobs that finish
// what a crash, a lost webhook or a provider that was down has left behind.
//
// What always holds: an intent is stored before the first call, with all that
// the calls will say; no transaction is open during a call; whoever talks about
// an identity holds its lease, and what they found out is stored only while they
// do; what the provider says is applied by one function, whoever asked; a webhook
// wakes somebody up and is never believed.
//
// What it is not: a decision. What a request means, and what follows from the
// provider's word, is in billing; what is remembered is the store's.
package cashier
