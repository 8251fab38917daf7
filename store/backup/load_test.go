package backup

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"purser/store/storetest"
)

// newer makes a pg_restore of a version to come the only one for a server of version 98. Like
// pg_restore 17 on a server of version 16, it sends a setting that the server does not know.
func newer(t *testing.T) {
	t.Helper()
	folder := t.TempDir()
	real := map[string]string{}
	for _, name := range []string{"pg_restore", "psql"} {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		real[name] = path
	}
	script := fmt.Sprintf(`#!/bin/sh
case "$*" in
--version) echo 'pg_restore (PostgreSQL) 99.1'; exit ;;
*--dbname*) echo 'unrecognized configuration parameter "setting_of_99"' >&2; exit 1 ;;
esac
%s "$@" > %s/script
ended=$?
sed 's/^SET lock_timeout = 0;$/&\nSET setting_of_99 = 0;/' %[2]s/script
exit $ended
`, real["pg_restore"], folder)
	if err := os.WriteFile(filepath.Join(folder, "pg_restore"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	// A link would not do: Debian's wrapper finds the program by its name and folder.
	if err := os.WriteFile(filepath.Join(folder, "psql"), []byte("#!/bin/sh\nexec "+real["psql"]+` "$@"`+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", folder+string(os.PathListSeparator)+os.Getenv("PATH"))
}

func TestANewerPgRestoreLoadsIntoAnOlderServer(t *testing.T) {
	newer(t)
	// Also what looks like a setting among the rows must not change.
	const row = "SET lock_timeout = 0;\nSET setting_of_99 = 0;\n"
	from := storetest.EmptyURL(t)
	storetest.Exec(t, from, `CREATE TABLE kept AS SELECT '`+row+`' || i AS line FROM generate_series(1, 20000) i`)
	file := filepath.Join(t.TempDir(), "purser.dump")
	if _, err := Dump(t.Context(), from, 15, file); err != nil {
		t.Fatal(err)
	}
	archive, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}

	to := storetest.EmptyURL(t)
	if err := Load(t.Context(), to, 98, bytes.NewReader(archive[:len(archive)/2])); err == nil {
		t.Error("an archive that was cut off was loaded")
	}
	storetest.Exec(t, to, `DO $$ BEGIN IF to_regclass('kept') IS NOT NULL THEN RAISE 'a part of an archive was loaded'; END IF; END $$`)
	if err := Load(t.Context(), to, 98, bytes.NewReader(archive)); err != nil {
		t.Fatal(err)
	}
	storetest.Exec(t, to, `DO $$ BEGIN
		IF (SELECT count(DISTINCT line) FROM kept WHERE line LIKE '`+row+`%') <> 20000 THEN RAISE 'rows are missing'; END IF; END $$`)
	if err := Load(t.Context(), to, 98, bytes.NewReader(archive)); err == nil || !strings.Contains(err.Error(), `psql: exit status 3`) || !strings.Contains(err.Error(), `"kept" already exists`) {
		t.Errorf("over its own rows: %v", err)
	}
}

func TestOnlySettingsAtTheBeginningOfAScriptAreAsked(t *testing.T) {
	t.Parallel()
	const head = "--\n-- PostgreSQL database dump\n--\n\n\\restrict x\n\nBEGIN;\n\n"
	const tail = "SELECT pg_catalog.set_config('search_path', '', false);\n\n--\n-- Name: a\n--\n\nCREATE TABLE a (b text);\nSET later = 0;\nCOPY a FROM stdin;\nSET later = 0;\n"
	ask := func(name, value string) string {
		return "SELECT pg_catalog.set_config(name, '" + value + "', false) FROM pg_catalog.pg_settings WHERE name = '" + name + "';\n"
	}
	for script, want := range map[string]string{
		"": "",
		head + "SET transaction_timeout = 0;\nSET client_encoding = 'UTF8';\nSET xmloption = content;\nSET empty = '';\n" + tail: head + ask("transaction_timeout", "0") + ask("client_encoding", "UTF8") + ask("xmloption", "content") + ask("empty", "") + tail,
		"SET cut = 0;": "SET cut = 0;",
	} {
		known, err := askForSettings(strings.NewReader(script))
		if err != nil {
			t.Fatal(err)
		}
		var got bytes.Buffer
		if _, err := got.ReadFrom(known); err != nil || got.String() != want {
			t.Errorf("%q, %v", got.String(), err)
		}
	}
}
