package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The shortest run that goes through every kind of preparation and load.
var shortest = []string{"--rounds=1", "--looks=3", "--wallets=2000", "--stored=2000",
	"--only=events-16,hot-wallet,many-wallets,check,mixed,batches-100,neighbour-flooded,two-nodes,stored,pgbench-simple-1,page"}

func TestRun(t *testing.T) {
	t.Parallel()
	t.Run("measures what it is asked to, and leaves nothing behind", func(t *testing.T) {
		t.Parallel()
		folder, results := openFolder(t), filepath.Join(t.TempDir(), "results.json")
		var stdout, stderr strings.Builder
		// Half a second is enough for an answer, unless the machine is very busy.
		for seconds := 0.5; ; seconds *= 4 {
			stdout.Reset()
			args := append(slices.Clone(shortest), fmt.Sprint("--seconds=", seconds), "--folder", folder, "--json", results)
			err := run(t.Context(), args, &stdout, &stderr)
			if err == nil {
				break
			}
			if !errors.Is(err, errNoAnswer) || seconds > 60 {
				t.Fatalf("%v\n%s", err, stderr.String())
			}
		}
		text, err := os.ReadFile(results)
		if err != nil {
			t.Fatal(err)
		}
		var got report
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"events-16", "hot-wallet", "many-wallets", "check", "mixed", "batches-100", "neighbour-flooded", "two-nodes", "stored-none", "stored-many", "pgbench-simple-1"} {
			if rounds := got.Samples[name]; len(rounds) != 1 || rounds[0].Rate <= 0 {
				t.Errorf("%s has %+v", name, rounds)
			}
			if !strings.Contains(stdout.String(), name) {
				t.Errorf("%s is not in what is printed", name)
			}
		}
		for _, p := range pages {
			if rounds := got.Samples[pagePrefix+p.name]; len(rounds) != 1 || rounds[0].P99MS <= 0 {
				t.Errorf("the page %s has %+v", p.name, rounds)
			}
		}
		if len(got.Samples) != 11+len(pages) {
			t.Errorf("it measured more than it was asked to: %v", got.Samples)
		}
		// Few, the neighbour's, many and shared wallets, those of two more databases with
		// the quiet ones of the second, and many again for the pages.
		if want := int64(fewWallets + 1 + fewWallets + 2000 + fewWallets + 2*fewWallets + quietWallets + 2000); got.Accounts.Wallets != want {
			t.Errorf("%d wallets were audited, not %d", got.Accounts.Wallets, want)
		}
		if !strings.Contains(stdout.String(), "many stored ÷ none") {
			t.Errorf("no figure is printed:\n%s", stdout.String())
		}
		assertEmpty(t, folder)
	})
	t.Run("leaves nothing behind when it is interrupted", func(t *testing.T) {
		t.Parallel()
		folder := openFolder(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		interrupt := writer(func(text []byte) {
			if strings.Contains(string(text), "round 1") {
				cancel()
			}
		})
		err := run(ctx, []string{"--seconds=1", "--only=events-16", "--folder", folder}, io.Discard, interrupt)
		if !errors.Is(err, context.Canceled) {
			t.Errorf("it ended with %v", err)
		}
		assertEmpty(t, folder)
	})
}

// openFolder can be passed through by the user whom root runs Postgres as.
func openFolder(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	for _, closed := range []string{folder, filepath.Dir(folder)} {
		if err := os.Chmod(closed, 0o711); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

func assertEmpty(t *testing.T, folder string) {
	t.Helper()
	left, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	if len(left) > 0 {
		t.Errorf("%v is left", left)
	}
}

type writer func([]byte)

func (w writer) Write(text []byte) (int, error) {
	w(text)
	return len(text), nil
}

func TestOptions(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"no round":                          {"--rounds=0"},
		"no length":                         {"--seconds=0"},
		"an unknown measurement":            {"--only=events-64,speed"},
		"no look":                           {"--looks=0"},
		"no wallet":                         {"--wallets=0"},
		"more wallets than can be numbered": {"--wallets=9999000"},
		"events that wallets cannot share":  {"--stored=1500"},
		"an argument that is not an option": {"quick"},
		"an option that does not exist":     {"--fast"},
	} {
		t.Run("refuses "+name, func(t *testing.T) {
			t.Parallel()
			if o, err := readOptions(args, io.Discard); err == nil {
				t.Errorf("it took %+v", o)
			}
		})
	}
	t.Run("shows its options when asked", func(t *testing.T) {
		t.Parallel()
		var shown strings.Builder
		if _, err := readOptions([]string{"--help"}, &shown); !errors.Is(err, flag.ErrHelp) || !strings.Contains(shown.String(), "-only") {
			t.Errorf("%v: %s", err, shown.String())
		}
	})
	t.Run("a name stands for itself and for those that begin with it and a dash", func(t *testing.T) {
		t.Parallel()
		for only, want := range map[string][]string{
			"events-1":       {"events-1"},
			"events":         {"events-64", "events-1", "events-16", "events-256"},
			"check,stored":   {"check", "stored-none", "stored-many"},
			"pgbench-simple": {"pgbench-simple-64", "pgbench-simple-1"},
		} {
			o, err := readOptions([]string{"--only", only}, io.Discard)
			if err != nil {
				t.Fatal(err)
			}
			if got := chosenNames(o); !slices.Equal(got, want) {
				t.Errorf("%s means %v", only, got)
			}
		}
	})
	t.Run("a quick run leaves out the stored events and the pages, unless they are asked for", func(t *testing.T) {
		t.Parallel()
		quick, err := readOptions([]string{"--quick"}, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		if got := chosenNames(quick); slices.Contains(got, "stored-many") || len(got) != len(scenarioNames())-2-len(pages) {
			t.Errorf("it measures %v", got)
		}
		asked, err := readOptions([]string{"--quick", "--only=stored"}, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		if got := chosenNames(asked); len(got) != 2 {
			t.Errorf("asked for them it measures %v", got)
		}
	})
}

func chosenNames(o options) (names []string) {
	for number := range phases {
		for _, s := range o.chosen(number) {
			names = append(names, s.name)
		}
	}
	return names
}
