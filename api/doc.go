// Package api is the /v1 interface that the backends of Purser's users call.
//
// What it is: the OpenAPI document, and a server that runs every request through
// the same checks: path, key, rate, permission, media type, size, JSON, schema. Then
// one handler calls the store, and one renderer writes the response.
//
// What always holds: requests are validated against the same document that is
// served; errors are {error, message} with a code of the catalogue; the application
// is the key's and nothing in a request can name another; path parameters are
// decoded exactly once; no response reveals internals.
//
// What it is not: a place for rules about money. Those are in the domain packages.
package api
