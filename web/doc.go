// Package web serves the dashboard and the documentation, and receives webhooks of the
// payment provider.
//
// What it is: route tables with the access each route requires, handlers that turn a
// request into the struct of a view, sessions, and security headers.
//
// What always holds: every response has the security headers; a page is rendered whole
// and the session is saved before the first byte is sent, so a failure becomes an
// error page and never half a page; no page is cached; another tenant's objects give
// the same 404 as missing ones; a form is accepted only from a page of the same session.
//
// What it is not: the API. Package api serves paths under /v1.
package web
