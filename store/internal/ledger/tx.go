package ledger

import (
	"context"

	"purser/store/internal/pg"
	"purser/store/queue"
)

// Tx is a transaction of an application that may change wallets.
type Tx struct{ queue.Tx }

// In adds the methods of this package and of the queue to a transaction.
func In(tx *pg.Tx) Tx { return Tx{queue.Tx{Tx: tx}} }

// Work runs in a transaction of the caller's own type, which adds methods to Tx.
func Work[T ~struct{ Tx }](work func(context.Context, T) error) func(context.Context, *pg.Tx) error {
	return func(ctx context.Context, tx *pg.Tx) error { return work(ctx, T{In(tx)}) }
}
