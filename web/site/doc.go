// Package site is what all pages share.
//
// What it is: Site, with what pages need of the server; Route, a row of a route table with
// the access that it requires; Request, with the session, the member and the application
// of the path loaded by the guard; Response; Form and its fields; lists, exports and error
// pages.
//
// What always holds: every response has the security headers; a page is rendered whole
// and the session is saved before the first byte is sent, so a failure becomes an error
// page and never half a page; no page is cached; another tenant's objects give the same
// 404 as missing ones; a form is accepted only from a page of the same session.
//
// What it is not: a page. The packages beside it have those, and know it but not each
// other.
package site
