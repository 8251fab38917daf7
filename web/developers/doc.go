// Package developers has the pages on which an application is connected to programs: the
// quickstart, API keys, webhooks and notifications, alert rules, the payment account with
// its sandbox, and settings.
//
// What it is: Pages with its route table.
//
// What always holds: a secret is shown once, in the reply that creates it; the sandbox's
// controls work on test applications only.
//
// What it is not: inbound webhooks of the payment provider, which package inbound
// receives.
package developers
