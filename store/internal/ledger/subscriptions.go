package ledger

// LiveStatuses is spelled as in the unique index that allows one live subscription per
// wallet.
const LiveStatuses = `('active', 'trialing', 'past_due', 'unpaid', 'paused')`
