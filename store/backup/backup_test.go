package backup

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestNoPasswordIsInTheCommandLine(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"postgres://ann:hidden@db.example:5433/x?sslmode=require&passfile=/a%20b": "postgres://ann@db.example:5433/x?passfile=%2Fa%20b&sslmode=require",
		"postgres://db.example/x?user=ann&password=hidden&sslmode=require":        "postgres://db.example/x?sslmode=require&user=ann",
		"postgresql://ann:hidden@a.example:1,b.example:2/x?sslmode=require":       "postgresql://ann@a.example:1,b.example:2/x?sslmode=require",
		"postgres://ann:hid%64en@127.0.0.1/x?pool_max_conns=3&search_path=other":  "postgres://ann@127.0.0.1/x",
	} {
		database, password, err := split(address)
		if database != want || password != "hidden" || err != nil {
			t.Errorf("%s: %s, %q, %v", address, database, password, err)
		}
	}
	for _, address := range []string{
		"host=db.example password=hidden", "postgres://ann:hidden@[bad", "postgres://ann@127.0.0.1/x?sslpassword=hidden",
	} {
		if database, _, err := split(address); err == nil || strings.Contains(err.Error(), "hidden") {
			t.Errorf("%s: %s, %v", address, database, err)
		}
	}
}

func TestComplaintsAreBounded(t *testing.T) {
	t.Parallel()
	var last tail
	for range 10 {
		if _, err := last.Write([]byte(strings.Repeat("x", maxComplaint) + "\n")); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := last.Write([]byte("the end\n")); err != nil {
		t.Fatal(err)
	}
	if text := last.text(); len(last.kept) != maxComplaint || !strings.HasSuffix(text, "the end") {
		t.Errorf("%d bytes are kept", len(last.kept))
	}
}

func TestFilesAreChecked(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(path, []byte("PGDM"), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := Check(file); err == nil || !strings.Contains(err.Error(), "is not a backup") {
		t.Errorf("four bytes: %v", err)
	}
	if err := absent(path); err == nil {
		t.Error("an existing file is absent")
	}
	if err := absent(path + "2"); err != nil {
		t.Error(err)
	}
}
