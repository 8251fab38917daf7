package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"purser/ids"
	"purser/store/embedded"
	"purser/store/storetest"
)

// inFolder runs a statement in the database of a data folder.
func inFolder(t *testing.T, data, statement string) {
	t.Helper()
	server, err := embedded.Start(t.Context(), embedded.Options{Dir: data})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := server.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	storetest.Exec(t, server.URL(databaseName), statement)
}

// A key that the database may have recorded is never removed, and one that does not belong to
// the database is never written.
func TestANewSecretKeyIsWrittenForGood(t *testing.T) {
	t.Parallel()
	data := storetest.DataDir(t)
	file := filepath.Join(data, secretFile)
	if _, err := command(t, data, "migrate"); err != nil {
		t.Fatal(err)
	}
	serve := func() error {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		return run(ctx, []string{"serve", "--addr", "127.0.0.1:0"}, []string{"PURSER_DATA=" + data}, stopWhenStarted{cancel}, io.Discard)
	}
	absent := func(when string) {
		t.Helper()
		if _, err := os.Stat(file); !os.IsNotExist(err) {
			t.Errorf("%s, a key is left: %v", when, err)
		}
	}
	sandboxKey := func() {
		t.Helper()
		if _, err := command(t, data, "sandbox", "key", "--app", ids.New().Format(ids.Application)); err == nil || !strings.Contains(err.Error(), file+" is missing") {
			t.Errorf("sandbox key says %v", err)
		}
	}

	sandboxKey()
	absent("before the first start")
	inFolder(t, data, `CREATE TABLE restore_unfinished (archive bytea)`)
	if err := serve(); err == nil || !strings.Contains(err.Error(), "restore") {
		t.Errorf("during a restore it says %v", err)
	}
	absent("after a start that did not reach the database")
	inFolder(t, data, `DROP TABLE restore_unfinished`)

	inFolder(t, data, `ALTER TABLE secret_keys ADD CONSTRAINT full_disk CHECK (false)`)
	if err := serve(); err == nil || !strings.Contains(err.Error(), "full_disk") {
		t.Errorf("it says %v", err)
	}
	first, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("after a start that failed while the key was recorded: %v", err)
	}
	inFolder(t, data, `ALTER TABLE secret_keys DROP CONSTRAINT full_disk`)
	if err := serve(); err != nil {
		t.Fatal(err)
	}
	if now, err := os.ReadFile(file); err != nil || string(now) != string(first) {
		t.Errorf("another key is in the folder: %v", err)
	}

	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	sandboxKey()
	inFolder(t, data, `CREATE TABLE restore_unfinished (archive bytea)`)
	if err := serve(); err == nil {
		t.Error("it serves during a restore")
	}
	inFolder(t, data, `DROP TABLE restore_unfinished`)
	if err := serve(); err == nil || !strings.Contains(err.Error(), secretFile+" is not the key") {
		t.Errorf("without its key it says %v", err)
	}
	absent("after the database refused a new key")
}
