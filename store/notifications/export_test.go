package notifications

// PruneIn is Prune within a transaction that the test ends.
var PruneIn = prune

// MaxScan is how many notifications a filtered page reads.
const MaxScan = maxScan
