package ledger

import "purser/store/internal/pg"

// Tx is a transaction of an application that may change wallets.
type Tx struct{ *pg.Tx }
