// Package faultproxy breaks connections to Postgres where it hurts.
//
// What it is: a proxy on the loopback that reads the framing of Postgres's
// protocol, so a test can end a connection at the one message it is about: the
// COMMIT that never goes out, the COMMIT that is done and never answered, the row
// that arrives by half, the peer that falls silent.
//
// What always holds: a fault is planned by the number of the COMMIT that passes,
// over all connections, so a plan from a seed can be drawn again; whatever is not
// broken passes unchanged; after Close nothing of it is left.
//
// What it is not: imported by anything but tests, nor a proxy for anything
// encrypted: it declines TLS.
package faultproxy
