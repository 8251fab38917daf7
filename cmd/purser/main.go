package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
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
        make an API key, and the organization and the application when they are missing
  purser users reset --email ADDRESS [--without-authenticator] [--data FOLDER]
        give somebody who cannot sign in another password, shown once; and turn a lost authenticator off
  purser users own --email ADDRESS --org NAME [--data FOLDER]
        make somebody with an account an owner of an organization
  purser verify [--new | --since 10m] [--limit 5m] [--data FOLDER]
        recompute every balance, counter and chain from the journal; exit 1 when anything differs
  purser migrate [--distribute] [--data FOLDER]
        bring the database's schema up to date; and spread its tables over a Citus cluster
  purser version

Settings come from the environment:
  DATABASE_URL       a Postgres server of your own, instead of the embedded one
  PURSER_ADDR        as --addr, 127.0.0.1:8080 when absent
  PURSER_DATA        as --data, ./data when absent
  PURSER_BASE_URL    the public address, for links
  PURSER_METRICS_ADDR
                     a private address for Prometheus' /metrics; none when absent
  PURSER_RATE_LIMIT  requests a second and key, 1000 when absent, 0 for no limit
  PURSER_SECRET_KEY  at least 32 characters; encrypts and signs. Required with DATABASE_URL,
                     else made and kept under the data folder
  PURSER_SECRET_KEY_PREVIOUS
                     the key before, while what it has encrypted is still in use
  PURSER_VERIFY_NEW  how often new entries are verified, 1h when absent, 0 for never
  PURSER_VERIFY_ALL  how often everything is verified, 24h when absent, 0 for never
  PURSER_VERIFY_LIMIT
                     how long one verification may take, 1h when absent
  PURSER_TRUSTED_PROXY
                     networks of proxies whose X-Forwarded-For is believed, such as 10.0.0.0/8; none when absent
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	err := run(ctx, os.Args[1:], os.Environ(), os.Stdout, os.Stderr)
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

// run is the whole program, with the world passed in.
func run(ctx context.Context, args, environ []string, stdout, stderr io.Writer) error {
	command, rest := split(args)
	switch command {
	case "serve":
		return serve(ctx, rest, environ, stdout, stderr)
	case "keys":
		if sub, rest := split(rest); sub == "create" {
			return createKey(ctx, rest, environ, stdout, stderr)
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
