// Package tenancy says who owns what and who may do what: organizations, their
// applications, their members, and the permissions that members and keys hold.
//
// What it is: the nouns of tenancy and the rules between people, as pure
// functions. Identifiers and times come in as arguments.
//
// What always holds: a permission's name never changes, because sets are kept by
// name; nobody gives, or takes from another, a permission that they lack; an
// organization that has an owner keeps one; an unknown role opens nothing.
//
// What it is not: a login. Passwords, sessions and invitations by link live at
// the dashboard's edge and in the store.
package tenancy
