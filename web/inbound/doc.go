// Package inbound receives webhooks of payment providers.
//
// What it is: the handler of one path, and the bound on lookups of connections that anyone
// can cause.
//
// What always holds: the body is read only for a connection that exists, and is stored only
// with a valid signature; a network that floods delays only itself; the status says whether
// the provider should send again.
//
// What it is not: what follows from a webhook. Package cashier reads the present state from
// the provider.
package inbound
