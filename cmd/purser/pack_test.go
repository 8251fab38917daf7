package main

import (
	"bytes"
	"encoding/binary"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"purser/ids"
	"purser/metering/monthly"
	"purser/store/rollups"
	"purser/store/storetest"
)

func TestPackCommand(t *testing.T) {
	t.Parallel()
	storetest.AvoidEndOf(t, 24*time.Hour) // the months to keep end with this one
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
	on := func(database string, args ...string) (string, error) {
		var out bytes.Buffer
		err := run(t.Context(), args, []string{"DATABASE_URL=" + database}, &out, io.Discard)
		return out.String(), err
	}
	pack := func(args ...string) (string, error) { return on(n.node.url, append([]string{"pack"}, args...)...) }
	for _, args := range [][]string{nil, {"--keep", "1"}, {"--keep", "-3"}} {
		if _, err := pack(args...); err == nil || !strings.Contains(err.Error(), "at least 2") {
			t.Errorf("pack %v: %v", args, err)
		}
	}
	if _, err := pack("--keep", "2", "--app", "app_none"); err == nil || !strings.Contains(err.Error(), "--app") {
		t.Errorf("an unknown application: %v", err)
	}
	if _, err := pack("--keep", "2", "--tablespace", "none"); err == nil || !strings.Contains(err.Error(), `tablespace "none" does not exist`) {
		t.Errorf("an unknown tablespace: %v", err)
	}
	app := n.node.first.AppID.Format(ids.Application)
	skips := func(line, failure string) {
		t.Helper()
		if said, err := pack("--keep", "2"); err == nil || !strings.Contains(err.Error(), failure) || !strings.Contains(said, line) || !strings.Contains(said, "Packed 0 events.") {
			t.Errorf("%q, %v, want %q, %q", said, err, line, failure)
		}
	}
	skips(app+": skipped: usage is added up until", "skipped 1 application,")
	_, err := n.node.store.Rollups(n.node.first).RollUp(t.Context(), rollups.Alone)
	noFailure(t, err)
	ann, err := n.app.Wallet(t.Context(), "ann")
	noFailure(t, err)
	for range 2 {
		skips(app+": skipped wallet "+ann.ID.Format(ids.Wallet)+": entry ", "skipped 1 wallet,")
	}
	n.verify(t)
	for _, want := range []string{"Packed 12 events.\nRunning VACUUM on usage_events", "Packed 0 events."} {
		if said, err := pack("--keep", "2"); err != nil || !strings.Contains(said, want) || strings.Contains(said, "VACUUM") != strings.Contains(want, "VACUUM") {
			t.Errorf("%q, %v, want %q", said, err, want)
		}
	}
	// As if the command had been interrupted before the index was rebuilt.
	storetest.Exec(t, n.node.url, `COMMENT ON INDEX usage_events_by_transaction IS NULL`)
	if said, err := pack("--keep", "2"); err != nil || !strings.Contains(said, "Packed 0 events.\nRunning VACUUM on usage_events") {
		t.Errorf("%q, %v", said, err)
	}
	n.verify(t)
	if packed, err := n.node.store.Installation().Packing(t.Context()); err != nil || packed.Events != 12 || packed.Skipped != 0 || packed.Bytes == 0 ||
		time.Since(time.UnixMilli(packed.FinishedAt)).Abs() > time.Hour {
		t.Errorf("metrics have %+v, %v", packed, err)
	}
	// As if the run had been interrupted.
	storetest.Exec(t, n.node.url, `UPDATE packed_runs SET done = false`)
	month := monthly.MonthOf(time.Now().UnixMilli())
	for range 3 {
		month = month.Previous()
	}
	if said, err := pack("--keep", "3"); err != nil || !strings.Contains(said, app+": continues an earlier run, which packs events until the end of "+string(month)) {
		t.Errorf("%q, %v", said, err)
	}
	// The blocks lie in a tablespace that does not exist where the backup is restored.
	cold, database := "cold_"+strings.ReplaceAll(ids.New().String(), "-", ""), storetest.Session(t, n.node.url)
	database(`SET allow_in_place_tablespaces = on`)
	database(`CREATE TABLESPACE ` + cold + ` LOCATION ''`)
	defer func() {
		if said, err := pack("--keep", "2", "--tablespace", "pg_default"); err != nil || !strings.Contains(said, "pg_default now.") {
			t.Errorf("%q, %v", said, err)
		}
		database(`DROP TABLESPACE ` + cold)
	}()
	for _, moved := range []bool{true, false} {
		if said, err := pack("--keep", "2", "--tablespace", cold); err != nil || strings.Contains(said, "Packed events are in the tablespace "+cold+" now.") != moved {
			t.Errorf("%q, %v", said, err)
		}
	}
	// A restored database has the packed events, and refuses earlier releases. The ids of
	// transactions are years later than the events of this node, so sums by entity differ.
	file, restored := filepath.Join(t.TempDir(), "backup"), storetest.EmptyURL(t)
	_, err = on(n.node.url, "backup", file)
	noFailure(t, err)
	database(`ALTER TABLESPACE ` + cold + ` RENAME TO other_` + cold)
	defer database(`ALTER TABLESPACE other_` + cold + ` RENAME TO ` + cold)
	said, err := on(restored, "restore", "--accept-differences", file)
	if rules := strings.ReplaceAll(said, "broken rule: usage by entity", ""); err != nil || strings.Contains(rules, "broken rule") {
		t.Errorf("%q, %v", said, err)
	}
	storetest.Exec(t, restored, `DO $$ BEGIN
		ASSERT (SELECT sum(events) FROM packed_events) = 12 AND EXISTS (SELECT FROM pg_constraint WHERE conname = 'session_reads_packed_events'); END $$`)
}
