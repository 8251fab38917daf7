package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
)

// version is set by the build.
var version = "dev"

const usage = `Purser: prepaid usage credits, metered and billed.

Usage:
  purser serve [--addr HOST:PORT] [--data FOLDER] [--demo]
        run the service; without DATABASE_URL, on a Postgres of its own under the data folder;
        with --demo, fill an empty database with an organization to look around in
  purser keys create --org NAME --app NAME [--live] --preset setup|ingestion|read-only
                     [--name NAME] [--expires 720h] [--json] [--data FOLDER]
        make an API key, and the organization and the application when they are missing;
        --org takes an id (org_...) too, and --org-slug the slug of an organization
  purser users reset --email ADDRESS [--without-authenticator] [--data FOLDER]
        give a person who cannot sign in a temporary password, shown once; turn a lost authenticator off
  purser users own --email ADDRESS --org NAME [--data FOLDER]
        make a person with an account an owner of an organization
  purser sandbox key --app ID [--json] [--data FOLDER]
        print the address, key and version with which a Stripe client reaches a test application's sandbox
  purser verify [--new | --since 10m] [--limit 5m] [--data FOLDER]
        recompute every balance, counter and chain from the journal; exit 1 when anything differs
  purser migrate [--distribute] [--adopt-secret-key] [--data FOLDER]
        bring the database's schema and rights up to date; spread its tables over a Citus cluster;
        or accept PURSER_SECRET_KEY in place of a key that is lost
  purser version

Settings come from the environment:
  DATABASE_URL       a Postgres server of your own, instead of the embedded one
  PURSER_ADDR        as --addr, 127.0.0.1:8080 when absent
  PURSER_DATA        as --data, ./data when absent
  PURSER_BASE_URL    the public address, for links
  PURSER_DRAIN       how long the server goes on serving after SIGTERM while /readyz answers 503, 5s when absent
  PURSER_MEMORY_LIMIT
                     how much memory the server may take, 512MiB when absent, 0 for no limit
  PURSER_MAX_CONNECTIONS
                     connections at once, 10000 when absent
  PURSER_LOG_LEVEL   debug, info, warn or error; info when absent
  PURSER_LOG_REQUESTS
                     which requests get a log line: all, errors, none, or at most
                     this number a second; 10 when absent
  PURSER_METRICS_ADDR
                     a private address for Prometheus' /metrics; none when absent
  PURSER_SANDBOX     on or off: the payments sandbox of test applications, on when absent
  PURSER_SANDBOX_ADDR
                     an address whose root is the sandbox's Stripe API, for clients that accept no path; none when absent
  PURSER_RATE_LIMIT  requests a second and key, 1000 when absent, 0 for no limit
  PURSER_DB_CONNS    database connections to open at most, 21 when absent
  PURSER_SECRET_KEY  at least 32 characters; encrypts and signs. Required with DATABASE_URL,
                     else made and kept under the data folder
  PURSER_SECRET_KEY_PREVIOUS
                     the key before, while what it has encrypted is still in use
  PURSER_VERIFY_NEW  how often new entries are verified, 1h when absent, 0 for never
  PURSER_VERIFY_ALL  how often everything is verified, 24h when absent, 0 for never
  PURSER_VERIFY_LIMIT
                     how long one verification may take, 1h when absent
  PURSER_NEW_ORGANIZATIONS
                     on or off: whether everyone with an account may create organizations, off when absent
  PURSER_SECOND_FACTOR
                     required or optional: an authenticator for members of every organization, optional when absent
  PURSER_KEEP_FAILURES
                     how long failed requests are kept, 720h when absent
  PURSER_TRUSTED_PROXY
                     networks of proxies whose X-Forwarded-For is believed, such as 10.0.0.0/8; none when absent
`

func main() {
	if len(os.Args) > 1 && os.Args[1] == "serve" {
		limitMemory(os.Environ()) // of this process, so not where tests run a server
	}
	err := run(notifyStop(context.Background()), os.Args[1:], os.Environ(), os.Stdout, os.Stderr)
	switch {
	case err == nil:
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	default:
		fmt.Fprintln(os.Stderr, "purser:", err)
		os.Exit(1)
	}
}

// run is the whole program, with the world passed in. Its error is one line.
func run(ctx context.Context, args, environ []string, stdout, stderr io.Writer) error {
	if err := runCommand(ctx, args, environ, stdout, stderr); err != nil {
		return oneLine{err}
	}
	return nil
}

// oneLine is an error whose text has no line breaks, as log collectors and service
// managers need it. Joined errors are separated by semicolons.
type oneLine struct{ error }

func (e oneLine) Error() string {
	var parts []string
	for line := range strings.Lines(e.error.Error()) {
		if line = strings.TrimSpace(line); line != "" {
			parts = append(parts, strings.TrimSuffix(line, ";"))
		}
	}
	return strings.Join(parts, "; ")
}

func (e oneLine) Unwrap() error { return e.error }

func runCommand(ctx context.Context, args, environ []string, stdout, stderr io.Writer) error {
	command, rest := split(args)
	switch command {
	case "serve":
		return serve(ctx, rest, environ, stdout, stderr)
	case "keys":
		if sub, rest := split(rest); sub == "create" {
			return createKey(ctx, rest, environ, stdout, stderr)
		}
	case "sandbox":
		if sub, rest := split(rest); sub == "key" {
			return printSandboxKey(ctx, rest, environ, stdout, stderr)
		}
	case "users":
		switch sub, rest := split(rest); sub {
		case "reset":
			return resetPassword(ctx, rest, environ, stdout, stderr)
		case "own":
			return makeOwner(ctx, rest, environ, stdout, stderr)
		}
	case "migrate":
		return migrate(ctx, rest, environ, stdout, stderr)
	case "verify":
		return verify(ctx, rest, environ, stdout, stderr)
	case "version", "--version":
		fmt.Fprintln(stdout, "purser", version)
		return nil
	case "help", "-h", "--help":
		fmt.Fprint(stdout, usage)
		return nil
	}
	if command == "" {
		return flag.ErrHelp
	}
	return fmt.Errorf("there is no command %q; 'purser help' lists those there are", strings.Join(args, " "))
}

func split(args []string) (first string, rest []string) {
	if len(args) == 0 {
		return "", nil
	}
	return args[0], args[1:]
}
