// Package sdk runs Stripe's current clients against the sandbox.
//
// What it is: the life of a subscription, through stripe-go and stripe-node in the
// versions that people install today, with nothing changed but host and key. It is a
// module of its own, so their dependencies are none of ours.
//
// What always holds: the clients are used as their documentation says; webhooks are
// verified by them and not by us.
//
// What it is not: a proof of what Stripe does. That is fidelity's.
package sdk
