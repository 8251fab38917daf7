package store_test

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"purser/ids"
	"purser/store/storetest"
)

// TestNotificationsOfAWalletAreNumberedInTheirOrder has some changes of a wallet made by a
// node whose clock is ahead: the last number has the state of now all the same.
func TestNotificationsOfAWalletAreNumberedInTheirOrder(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := newShop(t, url, 1)
	s.rule(t, balanceRuleOf("low", 100, 50))
	conn := connect(t, url)
	ahead := func() {
		t.Helper()
		var newest ids.ID
		noError(t, conn.QueryRow(t.Context(), `SELECT id FROM notifications WHERE app_id = $1 ORDER BY id DESC LIMIT 1`, s.application.ID).Scan(&newest))
		moved := newest
		binary.BigEndian.PutUint64(moved[:8], binary.BigEndian.Uint64(newest[:8])+60_000<<16)
		_, err := conn.Exec(t.Context(), `UPDATE notifications SET id = $3 WHERE app_id = $1 AND id = $2`, s.application.ID, newest, moved)
		noError(t, err)
	}
	charge := func(n int) {
		t.Helper()
		for range n {
			mustAccept(t, s.nodes[0], s.message("ann", freshID()))
		}
	}
	s.credit(t, "ann", 105)
	ahead()
	charge(1) // 95
	charge(5) // 45, by what the node remembers
	s.credit(t, "ann", 80)
	ahead()
	charge(3) // 95
	ahead()
	s.credit(t, "ann", 1)
	types, data := s.notifications(t)
	var got []string
	for i, kind := range types {
		got = append(got, fmt.Sprint(kind, " ", data[i]["balanceNanocredits"]))
	}
	want := []string{
		"deposit.created 105", "balance.low 95", "balance.low 45", "deposit.created 125", "balance.recovered 125", "balance.low 95", "deposit.created 96",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the feed is %q, want %q", got, want)
	}
}
