package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"purser/ids"
	"purser/keys"
	"purser/store/storetest"
)

// command runs purser with a data folder and gives what it printed.
func command(t *testing.T, data string, args ...string) (stdout string, err error) {
	t.Helper()
	var out, diagnostics bytes.Buffer
	err = run(t.Context(), args, []string{"PURSER_DATA=" + data}, &out, &diagnostics)
	if err != nil {
		t.Logf("purser %s: %v\n%s", strings.Join(args, " "), err, diagnostics.String())
	}
	return out.String(), err
}

type madeKey struct {
	OrgID, AppID, KeyID, Secret string
}

func createJSONKey(t *testing.T, data string, args ...string) madeKey {
	t.Helper()
	out, err := command(t, data, append([]string{"keys", "create", "--json"}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	var made madeKey
	decoder := json.NewDecoder(strings.NewReader(out))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&made); err != nil {
		t.Fatalf("%q: %v", out, err)
	}
	return made
}

func TestKeysCreate(t *testing.T) {
	t.Parallel()
	data := storetest.DataDir(t)
	first := createJSONKey(t, data, "--org", "Acme", "--app", "Chat", "--preset", "setup")

	t.Run("gives ids of their kinds and a secret that parses", func(t *testing.T) {
		for prefix, text := range map[string]string{ids.Organization: first.OrgID, ids.Application: first.AppID, ids.APIKey: first.KeyID} {
			if _, err := ids.Parse(prefix, text); err != nil {
				t.Errorf("%q: %v", text, err)
			}
		}
		secret, err := keys.Parse(first.Secret)
		if err != nil || secret.Live() {
			t.Errorf("live %v, %v", err == nil && secret.Live(), err)
		}
	})
	t.Run("finds the organization and the application by their names", func(t *testing.T) {
		again := createJSONKey(t, data, "--org", "Acme", "--app", "Chat", "--preset", "ingestion", "--name", "worker", "--expires", "720h")
		if again.OrgID != first.OrgID || again.AppID != first.AppID || again.KeyID == first.KeyID || again.Secret == first.Secret {
			t.Errorf("got %s, %s, %s after %s, %s, %s", again.OrgID, again.AppID, again.KeyID, first.OrgID, first.AppID, first.KeyID)
		}
	})
	t.Run("keeps live and development apart", func(t *testing.T) {
		live := createJSONKey(t, data, "--org", "Acme", "--app", "Chat", "--live", "--preset", "read-only")
		if live.OrgID != first.OrgID || live.AppID == first.AppID || !strings.HasPrefix(live.Secret, "psr_live_") {
			t.Errorf("got %s, %s", live.OrgID, live.AppID)
		}
	})
	t.Run("shows people the secret once", func(t *testing.T) {
		out, err := command(t, data, "keys", "create", "--org", "Acme", "--app", "Chat", "--preset", "setup")
		if err != nil || strings.Count(out, "psr_test_") != 1 {
			t.Errorf("printed %d secrets, %v", strings.Count(out, "psr_test_"), err)
		}
	})
	t.Run("leaves sound books", func(t *testing.T) {
		out, err := command(t, data, "verify")
		if err != nil || !strings.Contains(out, "2 applications") || !strings.Contains(out, "0 differences") {
			t.Errorf("printed %q, %v", out, err)
		}
	})
	t.Run("cannot be spread without Citus, and says so", func(t *testing.T) {
		if _, err := command(t, data, "migrate", "--distribute"); err == nil || !strings.Contains(err.Error(), "Citus") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("the schema is up to date", func(t *testing.T) {
		if out, err := command(t, data, "migrate"); err != nil || !strings.Contains(out, "up to date") {
			t.Errorf("printed %q, %v", out, err)
		}
	})
}

func TestKeysCreateRefuses(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "untouched")
	for name, args := range map[string][]string{
		"no organization":     {"--app", "Chat", "--preset", "setup"},
		"no application":      {"--org", "Acme", "--preset", "setup"},
		"no preset":           {"--org", "Acme", "--app", "Chat"},
		"an unknown preset":   {"--org", "Acme", "--app", "Chat", "--preset", "all"},
		"the custom preset":   {"--org", "Acme", "--app", "Chat", "--preset", "custom"},
		"an expiry behind":    {"--org", "Acme", "--app", "Chat", "--preset", "setup", "--expires", "-1h"},
		"a name of 121 runes": {"--org", strings.Repeat("é", 121), "--app", "Chat", "--preset", "setup"},
		"a stray argument":    {"--org", "Acme", "--app", "Chat", "--preset", "setup", "stray"},
		"an unknown flag":     {"--organisation", "Acme"},
	} {
		if _, err := command(t, data, append([]string{"keys", "create"}, args...)...); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
	if _, err := os.Stat(data); !os.IsNotExist(err) {
		t.Error("a refused command left a data folder behind")
	}
}

func TestServe(t *testing.T) {
	t.Parallel()
	data := storetest.DataDir(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	stdout, printed := io.Pipe()
	var log safeBuffer
	ended := make(chan error, 1)
	go func() {
		err := run(ctx, []string{"serve", "--addr", "127.0.0.1:0"}, []string{"PURSER_DATA=" + data}, printed, &log)
		printed.CloseWithError(err)
		ended <- err
	}()
	greeting := make([]byte, 200)
	n, err := stdout.Read(greeting)
	if err != nil {
		t.Fatalf("it did not start: %v\n%s", err, log.String())
	}
	var rest safeBuffer
	go io.Copy(&rest, stdout)
	base := addressIn(string(greeting[:n]))
	addr, isOurs := strings.CutPrefix(base, "http://")
	if !isOurs {
		t.Fatalf("it does not say where to click: %q", greeting[:n])
	}

	t.Run("answers at once", func(t *testing.T) {
		eventually(t, "/readyz answers 200", func() bool { // a probe may take two seconds at most
			return status(t, http.MethodGet, base+"/readyz", "", "") == http.StatusOK
		})
		for path, want := range map[string]int{"/healthz": 200, "/": 200, "/v1/openapi.json": 200, "/v1/application": 401, "/nowhere": 404} {
			if got := status(t, http.MethodGet, base+path, "", ""); got != want {
				t.Errorf("%s answers %d, not %d", path, got, want)
			}
		}
	})
	t.Run("answers programs as programs and people as people", func(t *testing.T) {
		for path, want := range map[string]string{
			"/nowhere": "text/html", "/v1x": "text/html",
			"/v1/nowhere": "application/json", "//v1/credits": "application/json", "/V1/credits": "application/json", "/v2": "application/json",
		} {
			response, err := http.Get(base + path)
			if err != nil {
				t.Fatal(err)
			}
			response.Body.Close()
			if got := response.Header.Get("Content-Type"); response.StatusCode != http.StatusNotFound || !strings.HasPrefix(got, want) {
				t.Errorf("%s answers %d in %s", path, response.StatusCode, got)
			}
		}
	})
	t.Run("prints the link through which the first account is made", func(t *testing.T) {
		link := regexp.MustCompile(`http://\S+/setup/\S+`)
		for !strings.Contains(rest.String(), "Ctrl-C") {
			runtime.Gosched()
		}
		found := link.FindString(rest.String())
		if got := status(t, http.MethodGet, found, "", ""); got != http.StatusOK {
			t.Errorf("%q answers %d", found, got)
		}
		if strings.Contains(log.String(), found[strings.LastIndex(found, "/")+1:]) {
			t.Error("the log holds the link")
		}
	})
	t.Run("serves a key that was made beside it", func(t *testing.T) {
		made := createJSONKey(t, data, "--org", "Acme", "--app", "Chat", "--preset", "setup")
		for _, step := range []struct {
			path, body string
			want       int
		}{
			{"credits", `{"key":"tokens","name":"Tokens","unit":"token"}`, 201},
			{"features", `{"key":"chat","name":"Chat","unit":"message","creditKey":"tokens","costNanocredits":"7"}`, 201},
			{"wallets", `{"identity":"ann@example.com"}`, 201},
			{"deposits", `{"identity":"ann@example.com","creditKey":"tokens","amountNanocredits":"7","idempotencyKey":"d"}`, 201},
			{"check", `{"identity":"ann@example.com","feature":"chat"}`, 200},
			{"events", `{"id":"e1","identity":"ann@example.com","feature":"chat"}`, 201},
			{"events", `{"id":"e2","identity":"ann@example.com","feature":"chat"}`, 409},
		} {
			if got := status(t, http.MethodPost, base+"/v1/"+step.path, made.Secret, step.body); got != step.want {
				t.Errorf("POST %s %s answers %d, not %d", step.path, step.body, got, step.want)
			}
		}
		if out, err := command(t, data, "verify"); err != nil || !strings.Contains(out, "1 application, 1 wallet, 2 entries: 0 differences") {
			t.Errorf("verify beside it printed %q, %v", out, err)
		}
		if strings.Contains(log.String(), made.Secret) || strings.Contains(log.String(), "ann@") {
			t.Error("the log holds a secret or an identity")
		}
	})
	t.Run("refuses an address that is taken", func(t *testing.T) {
		_, err := command(t, data, "serve", "--addr", addr)
		if err == nil || !strings.Contains(err.Error(), "PURSER_ADDR") {
			t.Errorf("got %v", err)
		}
	})
	stop()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("it did not stop cleanly: %v", err)
		}
	case <-time.After(patience):
		t.Error("it did not stop")
	}
	t.Run("refuses a data folder whose secret key was lost, and leaves none behind", func(t *testing.T) {
		key := filepath.Join(data, secretFile)
		kept, err := os.ReadFile(key)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(key); err != nil {
			t.Fatal(err)
		}
		if _, err := command(t, data, "serve", "--addr", "127.0.0.1:0"); err == nil || !strings.Contains(err.Error(), secretFile+" is not the key") {
			t.Errorf("it says %v", err)
		}
		if _, err := os.Stat(key); !os.IsNotExist(err) {
			t.Errorf("it left another key: %v", err)
		}
		if err := os.WriteFile(key, append(kept, '\n'), 0o600); err != nil { // as an editor writes it
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if err := run(ctx, []string{"serve", "--addr", "127.0.0.1:0"}, []string{"PURSER_DATA=" + data}, stopWhenStarted{cancel}, io.Discard); err != nil {
			t.Errorf("with the key restored: %v", err)
		}
	})
}

// A folder that was named wrongly, or not at all, gets no empty database that is then in order.
func TestCommandsForADatabaseRefuseAFolderWithoutOne(t *testing.T) {
	t.Parallel()
	app := ids.New().Format(ids.Application)
	for _, args := range [][]string{
		{"verify"}, {"export", "--to", filepath.Join(t.TempDir(), "files")}, {"pack", "--keep", "2"}, {"backup", filepath.Join(t.TempDir(), "purser.dump")}, {"sandbox", "key", "--app", app}, {"migrate", "--adopt-secret-key"},
		{"users", "reset", "--email", "ann@example.com"}, {"users", "own", "--email", "ann@example.com", "--org", "Acme"},
	} {
		for _, data := range []string{t.TempDir(), filepath.Join(t.TempDir(), "none")} {
			_, err := command(t, t.TempDir(), append(args, "--data", data)...)
			if err == nil || !strings.Contains(err.Error(), "there is no database in "+data) || !strings.Contains(err.Error(), "--data (PURSER_DATA)") {
				t.Errorf("purser %s: %v", strings.Join(args, " "), err)
			}
			if left, err := os.ReadDir(data); len(left) > 0 || err != nil && !os.IsNotExist(err) {
				t.Errorf("purser %s leaves %v, %v", strings.Join(args, " "), left, err)
			}
		}
	}
}

// Without the server's settings, a key is of a new database, and the server refuses it.
func TestCommandsThatCreateADatabaseSaySo(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"keys", "create", "--org", "Acme", "--app", "Chat", "--preset", "setup"}, {"migrate"}} {
		data := storetest.DataDir(t)
		for _, isNew := range []bool{true, false} {
			var diagnostics bytes.Buffer
			if err := run(t.Context(), args, []string{"PURSER_DATA=" + data}, io.Discard, &diagnostics); err != nil {
				t.Fatal(err)
			}
			if got := strings.Contains(diagnostics.String(), "Created a new database in "+data+"."); got != isNew {
				t.Errorf("purser %s on a new database (%v) prints %q", args[0], isNew, diagnostics.String())
			}
		}
	}
}

func TestServeRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args    []string
		environ []string
		says    string
	}{
		"a database of one's own without a secret key": {nil, []string{"DATABASE_URL=postgres://127.0.0.1:1/x"}, "PURSER_SECRET_KEY"},
		"an address without a port":                    {[]string{"--addr", "localhost"}, nil, "PURSER_ADDR"},
		"a database that is not there":                 {[]string{"--addr", "127.0.0.1:0"}, []string{"DATABASE_URL=postgres://127.0.0.1:1/x", "PURSER_SECRET_KEY=" + strings.Repeat("k", 32)}, "store"},
		"an address of a database that is malformed":   {[]string{"--addr", "127.0.0.1:0"}, []string{"DATABASE_URL=postgres://ann:hidden@[bad", "PURSER_SECRET_KEY=" + strings.Repeat("k", 32)}, "postgres://"},
	} {
		t.Run(name, func(t *testing.T) {
			err := run(t.Context(), append([]string{"serve"}, c.args...), append(c.environ, "PURSER_DATA="+t.TempDir()), io.Discard, io.Discard)
			if err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "hidden") {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestSecret(t *testing.T) {
	t.Run("is made once and kept for its owner alone", func(t *testing.T) {
		c := config{data: filepath.Join(t.TempDir(), "new")}
		if none, err := loadSecret(c); err != nil || none != "" {
			t.Fatalf("a folder without a secret has one, %v", err)
		}
		first, err := keepSecret(c, newSecret())
		if err != nil {
			t.Fatal(err)
		}
		second, err := keepSecret(c, newSecret())
		if err != nil || first != second || len(first) < minSecretKey {
			t.Errorf("two starts have two secrets, %v", err)
		}
		info, err := os.Stat(filepath.Join(c.data, secretFile))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("kept with mode %v, %v", info.Mode(), err)
		}
	})
	t.Run("gives each purpose a key of its own", func(t *testing.T) {
		s := secret(strings.Repeat("k", 32))
		if bytes.Equal(s.derive("cursors"), s.derive("other")) || len(s.derive("cursors")) != derivedKey {
			t.Error("two purposes share a key")
		}
	})
	t.Run("a file cut short is an error, not a new secret", func(t *testing.T) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, secretFile), []byte("short"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := loadSecret(config{data: dir}); err == nil {
			t.Error("it was accepted")
		}
	})
}

func TestUsage(t *testing.T) {
	if err := run(t.Context(), nil, nil, io.Discard, io.Discard); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("purser alone ends with %v", err)
	}
	for _, args := range [][]string{{"frob"}, {"keys"}, {"keys", "delete"}, {"serve", "--frob"}} {
		err := run(t.Context(), args, nil, io.Discard, io.Discard)
		if err == nil || !strings.Contains(err.Error(), strings.Trim(args[len(args)-1], "-")) || strings.Contains(err.Error(), "\n") {
			t.Errorf("purser %v does not say in a line what is wrong: %v", args, err)
		}
	}
	for _, args := range [][]string{{"keys", "--help"}, {"backup", "--help"}, {"restore", "-h"}, {"verify", "--help"}} {
		var said bytes.Buffer
		if err := run(t.Context(), args, nil, &said, io.Discard); !errors.Is(err, flag.ErrHelp) && (err != nil || said.Len() == 0) {
			t.Errorf("purser %v ends with %v: %s", args, err, &said)
		}
	}
	var out bytes.Buffer
	if err := run(t.Context(), []string{"help"}, nil, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	guide, err := os.ReadFile("../../docs/operating.md")
	if err != nil {
		t.Fatal(err)
	}
	for name := range settings {
		if !strings.Contains(out.String(), name) {
			t.Errorf("help does not name %s", name)
		}
		if !strings.Contains(string(guide), "\n| `"+name+"` |") {
			t.Errorf("docs/operating.md does not list %s", name)
		}
	}
	commands := regexp.MustCompile(`(?m)^  (purser [a-z]+( [a-z]+)?)`).FindAllStringSubmatch(out.String(), -1)
	if len(commands) < 10 {
		t.Fatalf("help has the commands %v", commands)
	}
	for _, command := range commands {
		if !strings.Contains(string(guide), "\n| `"+command[1]) {
			t.Errorf("docs/operating.md does not list %s", command[1])
		}
	}
}

func status(t *testing.T, method, url, key, body string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if key != "" {
		request.Header.Set("Authorization", "Bearer "+key)
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		t.Fatal(fmt.Errorf("reading the answer: %w", err))
	}
	return response.StatusCode
}
