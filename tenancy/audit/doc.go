// Package audit is the log of what people did by hand.
//
// What it is: the entry, who acted, and the seal that ties each entry to the one
// before it. One chain for each organization.
//
// What always holds: two entries that differ anywhere have different seals, and
// so have all entries after them; an entry that is changed, moved, left out or cut
// off the end is found by following the chain to its head.
//
// What it is not: a guard against whoever can rewrite the whole chain and its head.
// Against that, the head is kept in another place as well.
package audit
