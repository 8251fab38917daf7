package notifications

// PruneIn is Prune within a transaction that the test ends.
var PruneIn = prune

// FinishIn is Finish within a transaction that the test ends.
var FinishIn = finish

// MaxPrunedAttempts is how many attempts one transaction of the retention deletes.
const MaxPrunedAttempts = maxPrunedAttempts

// MaxScan is how many notifications a filtered page reads.
const MaxScan = maxScan
