package notifications

// PruneIn is Prune within a transaction that the test ends.
var PruneIn = prune
