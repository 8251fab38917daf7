package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// A flag that can't be used is refused before the database is opened, in a line that says
// what is expected, and not with a code of the API.
func TestCommandsRefuseFlagsThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 121)
	for command, c := range map[string]struct {
		args []string
		says string
	}{
		"verify with both kinds of new":       {[]string{"verify", "--new", "--since", "10m"}, "use --new or --since, not both"},
		"verify since a date":                 {[]string{"verify", "--since", "2026-10-01"}, "-since: must be a duration such as 30m"},
		"verify since the future":             {[]string{"verify", "--since", "-10m"}, "-since: must be a duration such as 30m"},
		"verify with a limit without a unit":  {[]string{"verify", "--limit", "5"}, "-limit: must be a duration such as 30m"},
		"verify with a negative limit":        {[]string{"verify", "--limit", "-5m"}, "-limit: must be a duration such as 30m"},
		"verify with a negative pause":        {[]string{"verify", "--watch", "-5m"}, "-watch: must be a duration such as 30m"},
		"listen after a negative number":      {[]string{"listen", "--forward", "http://127.0.0.1:1", "--after", "-1"}, "-after: must be the number of a notification, 0 for all"},
		"listen after a word":                 {[]string{"listen", "--forward", "http://127.0.0.1:1", "--after", "banana"}, "-after: must be the number of a notification, 0 for all"},
		"export before no month":              {[]string{"export", "--to", "x", "--before", "banana"}, `--before: "banana" is not a month. Write it as 2026-10.`},
		"export of no application":            {[]string{"export", "--to", "x", "--app", "banana"}, `--app: "banana" is not the id of an application`},
		"a check before a month":              {[]string{"export", "--check", "x", "--before", "2026-10"}, "--check checks all files"},
		"a check of an application":           {[]string{"export", "--check", "x", "--app", "banana"}, "--check checks all files"},
		"pack without months":                 {[]string{"pack"}, "--keep MONTHS, at least 2 and at most 1200"},
		"pack with too few months":            {[]string{"pack", "--keep", "1"}, "--keep MONTHS, at least 2 and at most 1200"},
		"pack with a negative number":         {[]string{"pack", "--keep", "-3"}, "--keep MONTHS, at least 2 and at most 1200"},
		"pack with a word":                    {[]string{"pack", "--keep", "three"}, "--keep MONTHS, at least 2 and at most 1200"},
		"pack with too many months":           {[]string{"pack", "--keep", strconv.Itoa(mostKept + 1)}, "--keep MONTHS, at least 2 and at most 1200"},
		"pack with the most months":           {[]string{"pack", "--keep", strconv.Itoa(mostKept)}, "there is no database"},
		"pack of no application":              {[]string{"pack", "--keep", "2", "--app", "banana"}, `--app: "banana" is not the id of an application`},
		"a reset of no address":               {[]string{"users", "reset", "--email", "banana"}, "--email: Enter an email address such as name@example.com."},
		"an owner of no organization":         {[]string{"users", "own", "--email", "ann@example.com"}, "needs --org or --org-slug"},
		"an owner of two organizations":       {[]string{"users", "own", "--email", "ann@example.com", "--org", "Acme", "--org-slug", "acme"}, "use --org or --org-slug, not both"},
		"an owner of a malformed id":          {[]string{"users", "own", "--email", "ann@example.com", "--org", "org_x"}, `--org: "org_x" is not the id`},
		"a key for a long organization":       {[]string{"keys", "create", "--org", long, "--app", "Chat", "--preset", "setup"}, "--org: The name must be 120 characters or fewer."},
		"a key for a long application":        {[]string{"keys", "create", "--org", "Acme", "--app", long, "--preset", "setup"}, "--app: The name must be 120 characters or fewer."},
		"a key with a long name":              {[]string{"keys", "create", "--org", "Acme", "--app", "Chat", "--preset", "setup", "--name", long}, "--name: The name must be 120 characters or fewer."},
		"a key that expires on a date":        {[]string{"keys", "create", "--org", "Acme", "--app", "Chat", "--preset", "setup", "--expires", "2027-01-01"}, "-expires: must be a duration such as 30m"},
		"the health of a port that is none":   {[]string{"health", "--addr", "127.0.0.1:99999"}, "a port from 1 to 65535"},
		"the health of an address without it": {[]string{"health", "--addr", "localhost"}, "HOST:PORT"},
	} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			data := filepath.Join(t.TempDir(), "untouched")
			stop := stopWhenStarted{cancel}
			err := run(ctx, c.args, []string{"PURSER_DATA=" + data, "PURSER_KEY=x", "PURSER_URL=http://127.0.0.1:1"}, stop, stop)
			if err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "invalid_request") || strings.Contains(err.Error(), "\n") {
				t.Errorf("it says %v; want %s", err, c.says)
			}
			if _, err := os.Stat(data); !os.IsNotExist(err) {
				t.Error("it left a data folder behind")
			}
		})
	}
}

// Settings are checked before a secret, a folder or a database is made.
func TestServeWithABadSettingMakesNothing(t *testing.T) {
	t.Parallel()
	for setting, says := range map[string]string{
		"OTEL_TRACES_EXPORTER=zipkin":                    "OTEL_TRACES_EXPORTER must be otlp or none",
		"OTEL_EXPORTER_OTLP_ENDPOINT=::":                 "OTEL_EXPORTER_OTLP_ENDPOINT must be an address such as http://127.0.0.1:4318",
		"OTEL_EXPORTER_OTLP_ENDPOINT=localhost:4318":     "OTEL_EXPORTER_OTLP_ENDPOINT must be an address such as http://127.0.0.1:4318",
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=grpc://x:43": "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT must be an address such as http://127.0.0.1:4318",
		"PURSER_ADDR=127.0.0.1:99999":                    "PURSER_ADDR) must be HOST:PORT, such as 127.0.0.1:8080, with a port from 1 to 65535",
		"PURSER_ADDR=192.0.2.1:80":                       "is not an address of this machine",
		"PURSER_SANDBOX_ADDR=127.0.0.1:99999":            "PURSER_SANDBOX_ADDR must be HOST:PORT",
		"PURSER_METRICS_ADDR=127.0.0.1:99999":            "PURSER_METRICS_ADDR must be HOST:PORT",
	} {
		t.Run(setting, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			data := filepath.Join(t.TempDir(), "untouched")
			err := run(ctx, []string{"serve"}, []string{"PURSER_DATA=" + data, "PURSER_ADDR=127.0.0.1:0", setting}, stopWhenStarted{cancel}, io.Discard)
			if err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "\n") {
				t.Errorf("it says %v; want %s", err, says)
			}
			if _, err := os.Stat(data); !os.IsNotExist(err) {
				t.Error("it left a data folder behind")
			}
		})
	}
}
