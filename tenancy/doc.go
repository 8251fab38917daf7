// Package tenancy says who owns what and who may do what: organizations, their
// applications, their members, and the permissions that members and keys hold.
//
// What it is: the nouns of tenancy and the rules between people, as pure
// functions. Identifiers and times come in as arguments.
//
// What always holds: a permission's name never changes, because sets are kept by
// name; a member can give or take only permissions that the member has; an
// organization that has an owner keeps one; an unknown role opens nothing.
//
// What it is not: a login. Passwords and codes are tenancy/credential's, the audit
// log is tenancy/audit's, sealed secrets are tenancy/vault's; sessions and
// invitations are rows of the store, which web reads for each request.
package tenancy
