// Package keys is the API key: what it may do, how long it lives, and the
// secret that proves it.
//
// What it is: presets, the rules of making, rotating and revoking a key, and the
// secret's form: "psr_live_" or "psr_test_", 256 random bits in 43 characters of
// base62, and 6 more that check the rest. Scanners find it by
// psr_(live|test)_[0-9A-Za-z]{49}.
//
// What always holds: a key has no permission that its maker lacked, and none
// that came to its preset later; a secret has one spelling, and prints itself
// only through Reveal; text that cannot be a secret is refused without a query.
//
// What it is not: the lookup. Finding a key by its hash, and dropping a revoked
// one from every node, is the store's.
package keys
