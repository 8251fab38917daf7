package reports

import (
	"testing"

	"purser/ids"
	"purser/store/internal/ledger"
	"purser/store/internal/pg"
)

// The catalog of a Citus coordinator counts no rows of a distributed table, so it is not
// asked: this transaction has no connection.
func TestEventsOfADistributedTableAreNotScannedAtOnce(t *testing.T) {
	t.Parallel()
	tx := appTx{ledger.In(&pg.Tx{Distributed: true})}
	if scan, err := tx.newReverseScan(t.Context(), ids.New()); err != nil || scan.whole {
		t.Errorf("the scan is %+v, %v", scan, err)
	}
}
