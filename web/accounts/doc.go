// Package accounts has the pages of users and organizations: setting up, signing in, the
// second factor, forgotten passwords, invitations, members, applications and the audit
// log.
//
// What it is: Pages with its route table; what counts attempts to sign in; the bounded
// queue of password checks; known devices.
//
// What always holds: an attempt is counted before its password or code is checked; a
// failed sign-in looks the same whether there is an account or not; no log has what was
// typed.
//
// What it is not: sessions, which package site keeps for all pages.
package accounts
