// Package web serves the dashboard and the documentation.
//
// What it is: Site, which assembles the route tables of the packages below: accounts,
// catalog, developers, docs and support, over what all pages share, package site. Package
// inbound receives webhooks of the payment provider.
//
// What always holds: every route of the site is in one table, and each row says who has
// access; a test tries every row with every role, in the own organization and in another.
//
// What it is not: the API. Package api serves paths under /v1.
package web
