package store_test

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"purser/store"
	"purser/store/verify"
)

var lossyPages = regexp.MustCompile(`lossy=(\d+)`)

func TestPackingRebuildsTheIndexOfTransactions(t *testing.T) {
	t.Parallel()
	b := keepPackedBooks(t)
	ctx := t.Context()
	// The table is small: a range for each page.
	exec(t, b.conn, `ALTER INDEX usage_events_by_transaction SET (pages_per_range = 1)`)
	exec(t, b.conn, `REINDEX INDEX usage_events_by_transaction`)
	number := func(sql string) int {
		t.Helper()
		n, err := strconv.Atoi(texts(t, b.conn, sql)[0])
		noError(t, err)
		return n
	}
	const file = `SELECT pg_relation_filenode('usage_events_by_transaction')::text`
	rebuilt := func() bool {
		t.Helper()
		before := number(file)
		noError(t, b.packer(t).RebuildIndex(ctx))
		if state := texts(t, b.conn, `SELECT format('%s %s', c.relname, i.indisvalid) FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
			WHERE i.indrelid = 'usage_events'::regclass AND c.relname LIKE 'usage_events_by_transaction%'`); len(state) != 1 || state[0] != "usage_events_by_transaction t" {
			t.Errorf("the indexes are %v", state)
		}
		return number(file) != before
	}
	if rebuilt() {
		t.Error("the index is rebuilt before events were packed")
	}
	b.pack(t)
	for _, want := range []bool{true, false} { // the first as after an interruption
		if rebuilt() != want {
			t.Errorf("the index is not rebuilt once: %v", want)
		}
	}

	t.Run("lookups by a transaction stay short where new events lie in the place of packed ones", func(t *testing.T) {
		now := time.Now().UnixMilli()
		uses := make([]store.Usage, 0, anns)
		for i := range cap(uses) {
			uses = append(uses, b.useOf("ann", packable(now), i))
		}
		for start := 0; start < len(uses); start += 400 {
			b.trackMore(t, uses[start:min(start+400, len(uses))])
		}
		// As autovacuum does: the last pages may be new, if the rebuild found them empty.
		exec(t, b.conn, `SELECT brin_summarize_new_values('usage_events_by_transaction')`)
		exec(t, b.conn, `SET enable_seqscan = off`)
		carl := b.first[packedEvents].Event.TransactionID
		plan := strings.Join(texts(t, b.conn, fmt.Sprintf(`EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT FROM usage_events WHERE tx_id = '%s'`, carl)), "\n")
		read := 0
		if found := lossyPages.FindStringSubmatch(plan); found != nil {
			read, _ = strconv.Atoi(found[1])
		}
		if all := number(`SELECT (pg_relation_size('usage_events') / 8192)::text`); read == 0 || read > max(4, all/5) {
			t.Errorf("it reads %d of %d pages:\n%s", read, all, plan)
		}
	})
	t.Run("the next run has it rebuilt again", func(t *testing.T) {
		b.verify(t, verify.Options{New: true, Record: true})
		if b.pack(t); !rebuilt() {
			t.Error("the index is as before")
		}
	})
	t.Run("an interrupted rebuild is repeated", func(t *testing.T) {
		for _, left := range []string{"ccnew", "ccold1"} {
			exec(t, b.conn, `CREATE INDEX usage_events_by_transaction_`+left+` ON usage_events USING brin (tx_id)`)
			exec(t, b.conn, `UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'usage_events_by_transaction_`+left+`'::regclass`)
		}
		if !rebuilt() || rebuilt() {
			t.Error("the index is not rebuilt once")
		}
	})
	t.Run("usage continues while it waits for an open transaction", func(t *testing.T) {
		exec(t, b.conn, `COMMENT ON INDEX usage_events_by_transaction IS NULL`)
		other := connect(t, b.url)
		exec(t, other, `BEGIN ISOLATION LEVEL REPEATABLE READ`)
		exec(t, other, `SELECT count(*) FROM usage_events`)
		p, ended := b.packer(t), make(chan error, 1)
		go func() { ended <- p.RebuildIndex(ctx) }()
		soon(t, "the rebuild waits", func() bool {
			return len(ended) > 0 || number(`SELECT count(*)::text FROM pg_stat_progress_create_index WHERE datname = current_database() AND phase LIKE 'waiting for%' AND lockers_total > 0`) > 0
		})
		if len(ended) > 0 {
			t.Error("it does not wait")
		}
		b.trackMore(t, []store.Usage{b.useOf("ann", packable(time.Now().UnixMilli()), 1)})
		exec(t, other, `COMMIT`)
		noError(t, <-ended)
		if rebuilt() {
			t.Error("it is rebuilt again")
		}
	})
}
