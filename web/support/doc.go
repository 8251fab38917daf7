// Package support has the pages on which an application's customers are looked after: the
// overview, the search, wallets and what can be done to them, usage, events, denials,
// deposits, subscriptions, checkouts, requests, payment issues and jobs.
//
// What it is: Pages with its route table; the lists' filters and their exports.
//
// What always holds: a page links only to what the member may open; what changes a balance
// asks for a reason or a key, is written to the audit log, and happens once for a form.
//
// What it is not: reports. Package reports reads what the pages show.
package support
