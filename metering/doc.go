// Package metering has the rules of usage: what it costs, whether it is allowed, and how
// balances change.
//
// What it is: amounts, prices, periods, allowances, the catalog's credits and
// features, wallets and their journal, and the decisions over them, as plain
// values and pure functions. Decide decides usage, for checks and tracking alike; Keys
// says what to load for it, and Apply advances the state to the next usage of a batch.
//
// What always holds: amounts are exact integers of at most 19 digits, a sum that
// would pass them is refused and changes nothing, a balance is never negative,
// and whatever changes a balance yields the journal entry that explains it. An
// event id is charged once, an entity once in a period of deduplication, and a
// blocking limit is never passed.
//
// What it is not: storage or transport, nor the usage engine, which is store.Engine.
// Nothing here reads a clock, a database or a context; time and state come in as arguments.
package metering
