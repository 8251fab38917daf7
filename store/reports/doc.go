// Package reports reads what the dashboard and the API show of an application, and
// keeps the statistics that pages are made of.
//
// What it is: App, the reads of one application; Stats, the counters of one node, which
// it writes down every few seconds and when a page asks.
//
// What always holds: a report costs what it shows, however many rows there are; a
// decision never waits for a counter, and no balance depends on one.
//
// What it is not: a way to change money. It writes statistics and samples of requests,
// and nothing else.
package reports
