// Package engine is the payments sandbox without its doors: the objects of one
// account and every rule by which they change.
//
// What it is: a World whose objects are read from a persist.Source as they are
// needed, the changes that callers, people at a hosted page and the clock make to
// it, the rows in which these are stored, and the JSON in which Stripe's API
// (version 2024-06-20) shows each object.
//
// What always holds: it is pure, so the same rows, moment and call give the
// same result; a call reads what it needs and no more, however much there is; every change records the event that announces it; a timer fires
// at its own instant, however late somebody looks; no card number is ever part
// of a world. A refused call may have begun its work: the caller throws the
// world away, unless the refusal says that what happened is kept.
//
// What it is not: a payment processor, nor the whole of Stripe. It has what
// subscriptions and one-off checkouts need: no trials, taxes, coupons, metered
// prices or Connect, and no charge object for a declined attempt.
package engine
