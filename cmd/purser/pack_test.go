package main

import (
	"bytes"
	"encoding/binary"
	"io"
	"strings"
	"testing"
	"time"

	"purser/ids"
	"purser/store/rollups"
)

func TestPackCommand(t *testing.T) {
	t.Parallel()
	n := newExportedNode(t)
	at := func(when time.Time) string {
		id := ids.New()
		var whole [8]byte
		binary.BigEndian.PutUint64(whole[:], uint64(when.UnixMilli()))
		copy(id[:6], whole[2:])
		return id.String()
	}
	for range 12 {
		n.use(t, "ann", at(monthDay(2, 1)))
	}
	// What this month has stays.
	n.now = time.Now()
	for range 12 {
		n.use(t, "ann", at(monthDay(2, 1)))
	}
	n.verify(t)
	_, err := n.node.store.Rollups(n.node.first).Settle(t.Context(), rollups.Alone)
	noFailure(t, err)
	pack := func(args ...string) (string, error) {
		var out bytes.Buffer
		err := run(t.Context(), append([]string{"pack"}, args...), []string{"DATABASE_URL=" + n.node.url}, &out, io.Discard)
		return out.String(), err
	}
	for _, args := range [][]string{nil, {"--keep", "1"}, {"--keep", "-3"}} {
		if _, err := pack(args...); err == nil || !strings.Contains(err.Error(), "at least 2") {
			t.Errorf("pack %v: %v", args, err)
		}
	}
	if _, err := pack("--keep", "2", "--app", "app_none"); err == nil || !strings.Contains(err.Error(), "--app") {
		t.Errorf("an unknown application: %v", err)
	}
	for _, want := range []string{"Packed 12 events.", "Packed 0 events."} {
		if said, err := pack("--keep", "2"); err != nil || !strings.Contains(said, want) {
			t.Errorf("%q, %v, want %q", said, err, want)
		}
	}
	n.verify(t)
}
