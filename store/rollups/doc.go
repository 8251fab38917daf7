// Package rollups adds up an application's usage by the hour, and reads the sums.
//
// What it is: App, which adds settled events (RollUp) and answers what was used, by
// feature, customer or API key.
//
// What always holds: an event is added exactly once, in the transaction that moves the
// boundary past it; nothing below the boundary can appear any more (rollup.Progress); a
// read costs the hours it covers, however many events there are.
//
// What it is not: part of deciding usage. Events are recorded without it.
package rollups
