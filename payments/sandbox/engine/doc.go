// Package engine is the payments sandbox without its HTTP layer: the objects of one
// account and the rules by which they change.
//
// What it is: an Account whose objects are read lazily from a persist.Source, the
// operations of API callers, of customers at hosted pages and of timers, the rows in
// which the result is stored, and the JSON in which Stripe's API (version 2024-06-20)
// shows each object.
//
// What always holds: it is pure, so the same rows, Env and call give the same result;
// a call reads only the objects it needs, however many the account has; every change
// records the event that announces it; a timer fires with its own due time, however
// late it is processed; no card number is stored. A refused call may have changed
// objects: the caller discards the account, unless the refusal is marked Kept.
//
// What it is not: a payment processor, nor all of Stripe. It has what subscriptions
// and one-off checkouts need: no trials, taxes, coupons, metered prices or Connect,
// and no charge object for a declined attempt.
package engine
