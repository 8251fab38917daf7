// Package web is the site for people: the pages beside the API.
//
// What it is: handlers that turn a request into the struct of a view, and the
// headers that keep a browser safe with the result.
//
// What always holds: every reply of this package carries the security headers;
// a page is rendered whole before its first byte is sent, so a failing view
// becomes an error page and never half a page; no page is stored by a cache.
//
// What it is not: the API. Paths under /v1 answer programs, in JSON, elsewhere.
package web
