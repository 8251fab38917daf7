// Package turns bounds how many callers with the same key run at once, so that one tenant
// delays only itself.
//
// What it is: Turns, whose Take waits for a free place.
//
// What always holds: no more callers of a key run than the bound; a waiting caller gets the
// next free place, or gives up when its context ends; a key without callers takes no memory.
//
// What it is not: a lock that all nodes see, which is a lease (store/queue), or a limit that
// refuses at once (httpd.InFlight).
package turns
