// Package fidelity holds the sandbox to Stripe's own description of its API. It
// is a module of its own, so that the product does not depend on the judge.
//
// What it is: tests. One has a broad conversation with the sandbox through
// Stripe's client: each request is also put to stripe-mock, in this process, and
// each answer and webhook is compared with the schema in the description that
// stripe-mock carries. The other states what the API refuses and does, and asks
// the sandbox; with STRIPE_TEST_KEY set to a test key it asks Stripe as well.
//
// What always holds: a route that the sandbox has and the conversation does not
// use is a failure; nothing of Stripe's description is copied into this module.
//
// What it is not: proof of what the sandbox does over time. Its own tests are.
package fidelity
