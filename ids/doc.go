// Package ids creates and parses the identifiers that all packages share.
//
// What it is: a 128-bit number that sorts by the moment it was created (UUIDv7).
// In Postgres it is a native uuid; on the wire it is a TypeID, a short prefix
// that says what it names and 26 characters of lower-case base32.
//
// What always holds: Parse(prefix, id.Format(prefix)) gives the same id, two
// ids of one process never collide, and the text form sorts as the number does.
//
// What it is not: a secret. An id may be guessed; access never rests on it.
package ids
