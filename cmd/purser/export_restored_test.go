package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// A backup of before March is restored after March was exported.
func TestFilesOfANewerDatabaseAreNotContinued(t *testing.T) {
	t.Parallel()
	n := newExportedNode(t)
	n.verify(t)
	folder := filepath.Join(t.TempDir(), "months")
	noFailure(t, n.export(t.Context(), folder, "2020-04"))
	n.node.exec(`DELETE FROM journal WHERE seq = 2 AND wallet_id = (SELECT id FROM wallets WHERE identity = 'bob')`)
	n.node.exec(`UPDATE wallet_seals SET seq = 1 WHERE wallet_id = (SELECT id FROM wallets WHERE identity = 'bob')`)
	n.node.exec(`UPDATE wallets SET last_seq = 1 WHERE identity = 'bob'`)
	if err := n.export(t.Context(), folder, "2020-05"); err == nil || !strings.Contains(err.Error(), "Export to another folder") {
		t.Errorf("got %v", err)
	}
	noFailure(t, n.export(t.Context(), filepath.Join(t.TempDir(), "others"), "2020-05"))
}
