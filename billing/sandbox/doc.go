// Package sandbox is a payment provider inside of the server, for applications
// that have none: it speaks the part of Stripe's protocol that billing uses, so
// that the real client works against it.
//
// What it is: the HTTP interface of Stripe's API, version 2024-06-20, for one
// world of objects an application; the pages where people pay, authenticate and
// change their card; a clock that can be advanced; signed webhooks; and the
// mistakes that a network can make, to be ordered by tests.
//
// What always holds: a change to a world and its events are kept together or not
// at all, one at a time an application; a webhook is sent after its change is
// kept, again and again until it is taken; a key reaches the world of its own
// application and no other; nothing here touches money or leaves this server.
//
// What it is not: for live applications, which it refuses, nor the part that
// knows about plans and credits. It knows neither, as Stripe does not.
package sandbox
