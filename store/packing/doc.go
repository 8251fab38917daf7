// Package packing moves usage events of past months into blocks, which take a fraction of
// the space.
//
// What it is: Packer, which works with the owner's rights: the serving role can change and
// delete no event. A run has three steps: it announces the time before which event ids may
// be packed, lists the ids of these events in packed_ids, and moves the events wallet by
// wallet into packed_events. After the runs, RebuildIndex frees the space and keeps lookups by
// transaction fast.
//
// What always holds: every event is in usage_events or in packed_events, because each
// transaction moves rows whole, and a run that was interrupted continues. An id is in
// packed_ids before its event leaves usage_events, and every node looks there before it
// charges for an id of such a time: the announcement advances the application's epoch, and
// no event is moved before all transactions have ended that were decided by an earlier one.
// An error with one wallet leaves its events where they are and is reported; the run goes on
// with the next, and a later one tries again.
//
// What it is not: removal. Every entry can still be read, verified and reversed.
package packing
