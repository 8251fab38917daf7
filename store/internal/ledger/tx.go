package ledger

import (
	"purser/store/internal/pg"
	"purser/store/queue"
)

// Tx is a transaction of an application that may change wallets.
type Tx struct{ queue.Tx }

// In adds the methods of this package and of the queue to a transaction.
func In(tx *pg.Tx) Tx { return Tx{queue.Tx{Tx: tx}} }
