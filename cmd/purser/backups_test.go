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

// backupCommands are the commands of a section of the guide.
func backupCommands(t *testing.T, section string) (blocks []string) {
	t.Helper()
	guides, err := docs.Guides()
	if err != nil {
		t.Fatal(err)
	}
	for _, guide := range guides {
		if guide.Slug != "backup" {
			continue
		}
		_, text, _ := strings.Cut(guide.Markdown, "\n## "+section+"\n")
		text, _, _ = strings.Cut(text, "\n## ")
		for _, block := range shellBlock.FindAllStringSubmatch(text, -1) {
			blocks = append(blocks, block[1])
		}
	}
	if len(blocks) == 0 {
		t.Fatalf("the section %q has no commands", section)
	}
	return blocks
}

// follow runs commands as a reader would, those of Purser in this process.
func follow(t *testing.T, folder, commands string, environ []string) (printed string) {
	t.Helper()
	var out bytes.Buffer
	for line := range strings.Lines(commands) {
		line = strings.ReplaceAll(strings.TrimSpace(line), "purser.dump", filepath.Join(folder, "purser.dump"))
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

// useOnce sets up an application and records the event e1 for the wallet ann.
func useOnce(t *testing.T, base, key string) {
	t.Helper()
	for _, step := range []struct{ path, body string }{
		{"credits", `{"key":"tokens","name":"Tokens","unit":"token"}`},
		{"features", `{"key":"chat","name":"Chat","unit":"message","creditKey":"tokens","costNanocredits":"7"}`},
		{"wallets", `{"identity":"ann"}`},
		{"deposits", `{"identity":"ann","creditKey":"tokens","amountNanocredits":"70","idempotencyKey":"d"}`},
		{"events", `{"id":"e1","identity":"ann","feature":"chat"}`},
	} {
		if got := status(t, http.MethodPost, base+"/v1/"+step.path, key, step.body); got != http.StatusCreated {
			t.Fatalf("POST %s answers %d", step.path, got)
		}
	}
}

// goesOn asks a server that has the rows of useOnce for an event that it knows and one
// that it doesn't.
func goesOn(t *testing.T, base, key string) {
	t.Helper()
	for id, want := range map[string]int{"e1": http.StatusOK, "e2": http.StatusCreated} {
		if got := status(t, http.MethodPost, base+"/v1/events", key, `{"id":"`+id+`","identity":"ann","feature":"chat"}`); got != want {
			t.Errorf("the event %s answers %d, not %d", id, got, want)
		}
	}
}

func TestABackupIsRestoredAsTheGuideSays(t *testing.T) {
	t.Parallel()
	p := startProduct(t)
	key := p.newKey(t, "--org", "Acme", "--app", "Chat", "--preset", "setup")
	useOnce(t, p.base, key.Secret)
	folder := t.TempDir()
	follow(t, folder, backupCommands(t, "Back up")[0], p.environ)

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
	const whole = "1 application, 1 wallet, 2 entries: 0 differences"
	restores := backupCommands(t, "Restore")
	storetest.Exec(t, server.URL("postgres"), `CREATE DATABASE other`)
	other := []string{"DATABASE_URL=" + server.URL("other"), "PURSER_SECRET_KEY=" + strings.Repeat("k", minSecretKey)}
	if printed := follow(t, folder, restores[1], other); !strings.Contains(printed, whole) {
		t.Errorf("with pg_restore: %s", printed)
	}
	environ := []string{"DATABASE_URL=" + server.URL("postgres"), "PURSER_SECRET_KEY=" + strings.Repeat("k", minSecretKey)}
	if printed := follow(t, folder, restores[0], environ); !strings.Contains(printed, whole) {
		t.Errorf("printed %s", printed)
	}
	for _, database := range []string{"other", "postgres"} {
		storetest.Exec(t, server.URL(database), `DO $$ BEGIN
			IF NOT EXISTS (SELECT FROM pg_stats WHERE tablename = 'journal') THEN RAISE 'the planner has no statistics of the restored rows'; END IF; END $$`)
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
		goesOn(t, base, key.Secret)
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
	_, plain := newLogin(t, address, "IN ROLE pg_read_all_data")
	if complaints, err := storetest.RunProgram(t, "pg_dump", "--file", file, plain); err == nil || !strings.Contains(complaints, "would be affected by row-level security") {
		t.Errorf("a login that policies bind: %v, %s", err, complaints)
	}
	_, bypassing := newLogin(t, address, "BYPASSRLS IN ROLE pg_read_all_data")
	complaints, err := storetest.RunProgram(t, "pg_dump", "--file", file, bypassing)
	if err != nil {
		t.Fatal(err, complaints)
	}
	if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), "acct_") {
		t.Errorf("the dump holds no account: %v", err)
	}
}
