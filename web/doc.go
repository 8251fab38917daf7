// Package web is the site for people: the pages beside the API.
//
// What it is: route tables that say who may come, handlers that turn a visit into
// the struct of a view, sessions, and the headers that keep a browser safe with
// the result.
//
// What always holds: every reply of this package carries the security headers;
// a page is rendered whole and the session is kept before the first byte is sent,
// so a failing view or a failing session becomes an error page and never half a
// page; no page is stored by a cache; what is not one's own answers like what is
// not there; nothing changes by a form that was not on a page of the same session.
//
// What it is not: the API. Paths under /v1 answer programs, in JSON, elsewhere.
package web
