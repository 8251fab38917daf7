// Package api is the /v1 interface that the backends of Purser's users call.
//
// What it is: the OpenAPI document that describes it, and an edge that takes a
// request through the same gates each time: path, key, permission, rate, media
// type, size, JSON, schema. Then one handler speaks to the store, and one
// renderer answers.
//
// What always holds: a request is checked against the same document that is
// served; what is refused is {error, message} with a code of the catalogue; the
// application is the key's and nothing in a request can name another; a text in
// a path is decoded exactly once; no reply tells anything of the inside.
//
// What it is not: a place for rules about money. Those are in the nouns.
package api
