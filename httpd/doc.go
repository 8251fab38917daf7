// Package httpd is the HTTP shell around the API, the dashboard and the sandbox.
//
// What it is: request ids, panic recovery, metrics, the access log, security headers,
// health and readiness, the bounds on unread bodies and on lookups of made-up secrets, and the
// one error handler: JSON under /v1, a page elsewhere.
//
// What always holds: every response carries its request id; an error that is not a fault
// is logged and answered with a fixed message; a log line has the route and never the
// path, headers or body.
//
// What it is not: an edge. It knows no resource, no key and no database: packages api and
// web register their routes on its echo app and report to it through Request.
package httpd
