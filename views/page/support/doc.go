// Package support is the pages that answer questions about usage and payments: overview,
// quickstart, wallets, transactions, checks and the lists of events, deposits,
// subscriptions, checkouts, requests, alerts and jobs. Package page states what holds
// for all pages.
package support
