// Package people stores who uses Purser: organizations, applications, members, accounts,
// sessions, invitations and the audit log.
//
// What it is: Org, the rows of one organization; User, those of one account; Auth, what
// happens before an account is known; Directory, the lookups before a scope is known.
//
// What always holds: these rows belong to no application, so no row-level policy covers
// them, and every statement names the organization or the account; a change by hand is
// in the organization's audit log, in the same transaction; an organization keeps an
// owner.
//
// What it is not: a place for rules about roles, passwords or permissions. Packages
// tenancy and tenancy/credential have them.
package people
