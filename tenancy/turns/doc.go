// Package turns has callers with the same key wait for each other: what one tenant does at
// once stays bounded, while others go on.
//
// Always: no more callers of a key go on than was said; those who wait get the next free
// place, or give up with their context; a key without callers takes no memory.
//
// Not here: locks that all nodes see, which are leases (store/queue), and refusals at once
// (httpd.InFlight).
package turns
