package store_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"purser/ids"
	"purser/store"
	"purser/store/verify"
)

// tablespace makes a tablespace, and drop ends it.
func (b *packedBooks) tablespace(t *testing.T) (name string, drop func()) {
	t.Helper()
	name = "cold_" + strings.ReplaceAll(ids.New().String(), "-", "")
	exec(t, b.conn, `SET allow_in_place_tablespaces = on`)
	exec(t, b.conn, `CREATE TABLESPACE `+name+` LOCATION ''`)
	return name, func() {
		t.Helper()
		_, err := b.packer(t).MoveTo(t.Context(), "pg_default")
		noError(t, err)
		exec(t, b.conn, `DROP TABLESPACE `+name)
	}
}

// Month after month as many events: what the main disk has of them stays the same, and all
// that grows is in the other tablespace.
func TestTheMainDiskHasOnlyRecentEvents(t *testing.T) {
	t.Parallel()
	b := keepPackedBooks(t)
	cold, drop := b.tablespace(t)
	defer drop()
	for _, first := range []bool{true, false} {
		moved, err := b.packer(t).MoveTo(t.Context(), cold)
		noError(t, err)
		if moved != first {
			t.Errorf("moved again is %v", moved)
		}
	}
	const blocks = `c.relname LIKE 'packed_events%' OR c.relname LIKE 'packed_ids%'`
	size := func(relations string) int {
		t.Helper()
		n, err := strconv.Atoi(texts(t, b.conn, `SELECT sum(pg_relation_size(c.oid))::bigint::text FROM pg_class c WHERE `+relations)[0])
		noError(t, err)
		return n
	}
	var hot, packed []int
	for month := range 6 {
		if month > 0 {
			now := time.Now().UnixMilli()
			uses := make([]store.Usage, 0, 1_200)
			for i := range cap(uses) {
				uses = append(uses, b.useOf([]string{"ann", "bob"}[i%2], packable(now), i))
			}
			outcomes, err := b.usage.TrackBatch(fresh(uses[:600]))
			noError(t, err)
			rest, err := b.usage.TrackBatch(fresh(uses[600:]))
			noError(t, err)
			b.uses, b.first = append(b.uses, uses...), append(append(b.first, outcomes...), rest...)
			b.before = time.Now().UnixMilli() + 1
			soon(t, "usage that is added up", func() bool { return b.settle(t).Until >= b.before })
			b.verify(t, verify.Options{New: true, Record: true})
		}
		b.pack(t)
		exec(t, b.conn, `VACUUM usage_events`)
		hot, packed = append(hot, size(`c.relname = 'usage_events'`)), append(packed, size(blocks))
	}
	// Without its indexes, whose pages are reused once no older snapshot is left in the cluster.
	if last := len(hot) - 1; hot[last] > hot[1]*5/4 || packed[last] < 2*packed[0] {
		t.Errorf("the main disk has %v bytes of events, the other %v", hot, packed)
	}
	if elsewhere := texts(t, b.conn, `SELECT c.relname FROM pg_class c LEFT JOIN pg_tablespace s ON s.oid = c.reltablespace
		WHERE (`+blocks+`) AND s.spcname IS DISTINCT FROM '`+cold+`'`); len(elsewhere) > 0 {
		t.Errorf("%v are on the main disk", elsewhere)
	}
	for i := 0; i < len(b.uses); i += 97 {
		b.repeats(t, b.usage.Track, b.uses[i], i)
	}
	b.verify(t, verify.Options{})
}

func TestAnUnknownTablespaceIsRefused(t *testing.T) {
	t.Parallel()
	b := keepPackedBooks(t)
	if _, err := b.packer(t).MoveTo(t.Context(), "no'where"); err == nil || !strings.Contains(err.Error(), `tablespace "no'where" does not exist`) {
		t.Errorf("it says %v", err)
	}
}
