package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"purser/docs"
	"purser/store/embedded"
	"purser/store/storetest"
)

var shellBlock = regexp.MustCompile("(?s)```sh\n(.*?)```")

// backupCommands are the commands of the section about backups: how to dump, and
// how to restore.
func backupCommands(t *testing.T) (dump, restore string) {
	t.Helper()
	guides, err := docs.Guides()
	if err != nil {
		t.Fatal(err)
	}
	for _, guide := range guides {
		_, section, found := strings.Cut(guide.Markdown, "\n## Backups\n")
		if !found {
			continue
		}
		section, _, _ = strings.Cut(section, "\n## ")
		blocks := shellBlock.FindAllStringSubmatch(section, -1)
		if len(blocks) != 2 {
			t.Fatalf("the section has %d blocks of commands", len(blocks))
		}
		return blocks[0][1], blocks[1][1]
	}
	t.Fatal("no guide has a section about backups")
	return "", ""
}

// follow runs commands as a reader would, those of Purser in this process.
func follow(t *testing.T, folder, commands string, environ []string) (printed string) {
	t.Helper()
	var out bytes.Buffer
	for line := range strings.Lines(commands) {
		line = strings.TrimSpace(line)
		if args, ours := strings.CutPrefix(line, "purser "); ours {
			if err := run(t.Context(), strings.Fields(args), environ, &out, &out); err != nil {
				t.Fatalf("%s: %v\n%s", line, err, out.String())
			}
			continue
		}
		cmd := exec.CommandContext(t.Context(), "sh", "-c", line)
		cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = folder, append(os.Environ(), environ...), &out, &out
		if err := cmd.Run(); err != nil {
			t.Fatalf("%s: %v\n%s", line, err, out.String())
		}
	}
	return out.String()
}

func TestABackupIsRestoredAsTheGuideSays(t *testing.T) {
	t.Parallel()
	p := startProduct(t)
	key := p.newKey(t, "--org", "Acme", "--app", "Chat", "--preset", "setup")
	for _, step := range []struct{ path, body string }{
		{"credits", `{"key":"tokens","name":"Tokens","unit":"token"}`},
		{"features", `{"key":"chat","name":"Chat","unit":"message","creditKey":"tokens","costNanocredits":"7"}`},
		{"wallets", `{"identity":"ann"}`},
		{"deposits", `{"identity":"ann","creditKey":"tokens","amountNanocredits":"70","idempotencyKey":"d"}`},
		{"events", `{"id":"e1","identity":"ann","feature":"chat"}`},
	} {
		if got := status(t, http.MethodPost, p.base+"/v1/"+step.path, key.Secret, step.body); got != http.StatusCreated {
			t.Fatalf("POST %s answers %d", step.path, got)
		}
	}
	dump, restore := backupCommands(t)
	folder := t.TempDir()
	follow(t, folder, dump, p.environ)

	// Another machine, whose Postgres never had a Purser.
	server, err := embedded.Start(t.Context(), embedded.Options{Dir: storetest.DataDir(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	environ := []string{"DATABASE_URL=" + server.URL("postgres"), "PURSER_SECRET_KEY=" + strings.Repeat("k", minSecretKey)}
	if printed := follow(t, folder, restore, environ); !strings.Contains(printed, "1 application, 1 wallet, 2 entries: 0 differences") {
		t.Errorf("printed %s", printed)
	}
	wrong := []string{environ[0], "PURSER_SECRET_KEY=" + strings.Repeat("w", minSecretKey)}
	if err := run(t.Context(), []string{"serve", "--addr", "127.0.0.1:0"}, wrong, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), isWrong) {
		t.Errorf("with another key: %v", err)
	}

	t.Run("and served with a login that owns nothing", func(t *testing.T) {
		storetest.Exec(t, server.URL("postgres"), `CREATE ROLE purser_serve LOGIN`)
		storetest.Exec(t, server.URL("postgres"), `GRANT purser_app TO purser_serve`)
		serving := strings.Replace(server.URL("postgres"), "postgres@", "purser_serve@", 1)
		base, _ := startServer(t, "DATABASE_URL="+serving)
		for id, want := range map[string]int{"e1": http.StatusOK, "e2": http.StatusCreated} {
			if got := status(t, http.MethodPost, base+"/v1/events", key.Secret, `{"id":"`+id+`","identity":"ann","feature":"chat"}`); got != want {
				t.Errorf("the event %s answers %d, not %d", id, got, want)
			}
		}
		var out bytes.Buffer
		if err := run(t.Context(), []string{"verify"}, []string{"DATABASE_URL=" + serving}, &out, io.Discard); err != nil || !strings.Contains(out.String(), "3 entries: 0 differences") {
			t.Errorf("verify says %s, %v", out.String(), err)
		}
	})
}

// The owner's own policies bind it, so its dump must fail and not be empty.
func TestADumpIsWholeOrFails(t *testing.T) {
	t.Parallel()
	address := storetest.FreshURL(t)
	sealRows(t, address, 1)
	file := filepath.Join(t.TempDir(), "dump.sql")
	_, plain := storetest.Login(t, address, "IN ROLE pg_read_all_data")
	if complaints, err := storetest.RunProgram(t, "pg_dump", "--file", file, plain); err == nil || !strings.Contains(complaints, "would be affected by row-level security") {
		t.Errorf("a login that policies bind: %v, %s", err, complaints)
	}
	_, bypassing := storetest.Login(t, address, "BYPASSRLS IN ROLE pg_read_all_data")
	complaints, err := storetest.RunProgram(t, "pg_dump", "--file", file, bypassing)
	if err != nil {
		t.Fatal(err, complaints)
	}
	if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), "acct_") {
		t.Errorf("the dump holds no account: %v", err)
	}
}
