// Package audit is the log of what people, API keys and the command line changed.
//
// What it is: the entry, who acted, and the seal that ties each entry to the one
// before it. One chain for each organization.
//
// What always holds: two entries that differ anywhere have different seals, and
// so have all entries after them; an entry that is changed, moved, left out or cut
// off the end is found by following the chain to its head.
//
// What it is not: protection against rewriting the whole chain together with its head.
// Against that, the head is also stored in another place.
package audit
