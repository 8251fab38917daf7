package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	_ "time/tzdata" // the image has no time zones

	"purser/fault"
)

const usage = `Purser: prepaid usage credits, metered and billed.

Usage:
  purser serve [--addr HOST:PORT] [--data FOLDER] [--demo]
        run the server; without DATABASE_URL, with an embedded Postgres in the data folder;
        --demo fills an empty database with demo data
  purser keys create --org NAME --app NAME [--live] --preset setup|ingestion|read-only
                     [--name NAME] [--expires 720h] [--json] [--data FOLDER]
        create an API key, plus the organization and application if they don't exist;
        --org also accepts an id (org_...), and --org-slug a slug
  purser users reset --email ADDRESS [--without-authenticator] [--data FOLDER]
        reset a password and print a temporary one; optionally turn off a lost authenticator
  purser users own --email ADDRESS --org NAME [--data FOLDER]
        make an existing user an owner of an organization;
        --org also accepts an id (org_...), and --org-slug a slug
  purser sandbox key --app ID [--json] [--data FOLDER]
        print the URL, key and API version of a test application's sandbox, for Stripe SDKs
  purser listen --forward URL [--types TYPES] [--after NUMBER] [--url URL]
        forward an application's notifications to a program on this machine, signed as webhooks;
        with the server in PURSER_URL and an API key in PURSER_KEY
  purser verify [--new | --since 10m] [--limit 5m] [--watch 15m] [--data FOLDER]
        recompute every balance, counter and chain from the journal; exit 1 on any difference;
        --watch repeats it and exports the result at PURSER_METRICS_ADDR
  purser migrate [--distribute] [--adopt-secret-key] [--data FOLDER]
        update the database's schema and privileges; --distribute distributes its tables over a
        Citus cluster; --adopt-secret-key accepts PURSER_SECRET_KEY in place of a lost key
  purser backup FILE [--data FOLDER]
        write the database to a file, with pg_dump, beside running servers
  purser restore FILE [--accept-differences] [--data FOLDER]
        restore a backup into an empty database or a new data folder, and verify it
  purser export --to FOLDER [--before 2026-10] [--app ID] [--data FOLDER]
        write the verified entries of every month that is over to files, by application
  purser export --check FOLDER
        check such files against themselves, without a database; exit 1 if one was changed
  purser pack --keep MONTHS [--app ID] [--tablespace NAME] [--data FOLDER]
        store the usage events of earlier months in less space, beside running servers
  purser health [--addr HOST:PORT]
        ask the server on this machine whether it is ready; exit 1 if it isn't
  purser version [--json]
        print the version, the commit, its time, and the Go release

Environment variables:
  DATABASE_URL       your own Postgres server, instead of the embedded one
  PURSER_ADDR        same as --addr (default 127.0.0.1:8080)
  PURSER_DATA        same as --data (default ./data)
  PURSER_BASE_URL    the public address, for links
  PURSER_DRAIN       how long to keep serving after SIGTERM while /readyz returns 503 (default 5s)
  PURSER_MEMORY_LIMIT
                     memory limit of the server, 0 for none (default 512MiB)
  PURSER_MAX_CONNECTIONS
                     maximum concurrent connections (default 10000)
  PURSER_LOG_LEVEL   debug, info, warn or error (default info)
  PURSER_LOG_REQUESTS
                     which requests to log: all, errors, none, or a maximum
                     number per second (default 10)
  OTEL_EXPORTER_OTLP_ENDPOINT and the other OTEL_ variables of OpenTelemetry
                     where to send traces, over http/protobuf (default nowhere)
  PURSER_METRICS_ADDR
                     a private address for Prometheus metrics at /metrics and profiles at /debug/pprof/ (default none)
  PURSER_SANDBOX     on or off: the payments sandbox of test applications (default on)
  PURSER_SANDBOX_ADDR
                     an address that serves the sandbox's Stripe API at its root, for SDKs without a path (default none)
  PURSER_RATE_LIMIT  requests per second and key, 0 for no limit (default 1000)
  PURSER_DB_CONNS    maximum database connections (default 25)
  PURSER_SECRET_KEY  at least 32 characters; encrypts and signs. Required with DATABASE_URL,
                     otherwise created in the data folder
  PURSER_SECRET_KEY_PREVIOUS
                     an additional key for decryption while you rotate PURSER_SECRET_KEY
  PURSER_VERIFY_NEW  how often to verify new entries, 0 for never (default 1h)
  PURSER_VERIFY_ALL  how often to verify everything, 0 for never (default 24h)
  PURSER_VERIFY_LIMIT
                     time limit of one verification (default 1h)
  PURSER_NEW_ORGANIZATIONS
                     on or off: whether anyone with an account can create organizations (default off)
  PURSER_SECOND_FACTOR
                     required or optional: two-factor for members of every organization (default optional)
  PURSER_SMTP_URL    sends invitations, reset links and notices, such as smtps://user:password@mail.example.com (default no mail)
  PURSER_MAIL_FROM   the address that mails come from, such as Purser <billing@example.com>. Required with PURSER_SMTP_URL
  PURSER_KEEP_FAILURES
                     how long to keep failed requests (default 720h)
  PURSER_KEEP_DENIALS
                     how long to keep denials (default 720h)
  PURSER_TRUSTED_PROXY
                     networks of trusted proxies (X-Forwarded-For), such as 10.0.0.0/8 (default none)
  PURSER_NOTIFICATION_DAYS
                     how many days to keep notifications and their deliveries (default 90)
  PURSER_WEBHOOK_NETWORKS
                     private networks that webhooks may be sent to, such as 10.1.0.0/16 (default none)
`

func main() {
	if len(os.Args) > 1 && os.Args[1] == "serve" {
		limitMemory(os.Environ()) // process-wide, so not in run, which tests call
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

// run is the whole program with its environment as parameters. Its error is one line.
func run(ctx context.Context, args, environ []string, stdout, stderr io.Writer) error {
	if err := runCommand(ctx, args, environ, stdout, stderr); err != nil {
		return oneLine{err}
	}
	return nil
}

// oneLine is an error without line breaks, for log collectors and service managers, and
// without the API's code of a refusal. Joined errors are separated by semicolons.
type oneLine struct{ error }

func (e oneLine) Error() string {
	var parts []string
	text := e.error.Error()
	if refusal, ok := errors.AsType[*fault.Fault](e.error); ok {
		text = strings.Replace(text, refusal.Error(), refusal.Message, 1)
	}
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			parts = append(parts, strings.TrimSuffix(line, ";"))
		}
	}
	return strings.Join(parts, "; ")
}

func (e oneLine) Unwrap() error { return e.error }

// commands are those that need nothing but the settings.
var commands = map[string]func(ctx context.Context, c config, args []string, stdout, stderr io.Writer) error{
	"keys create": createKey, "sandbox key": printSandboxKey, "users reset": resetPassword, "users own": makeOwner,
	"migrate": migrate, "verify": verifyBooks, "export": exportMonths, "pack": packEvents, "health": health,
	"backup": writeBackup, "restore": restoreBackup,
}

func runCommand(ctx context.Context, args, environ []string, stdout, stderr io.Writer) error {
	command, rest := split(args)
	switch command {
	case "":
		return flag.ErrHelp
	case "serve":
		return serve(ctx, rest, environ, stdout, stderr)
	case "listen":
		return listen(ctx, rest, environ, stdout, stderr)
	case "version", "--version":
		return printVersion(rest, stdout)
	case "help", "-h", "--help":
		fmt.Fprint(stdout, usage)
		return nil
	case "keys", "sandbox", "users":
		var sub string
		if sub, rest = split(rest); sub == "-h" || sub == "--help" {
			fmt.Fprint(stdout, usage)
			return nil
		}
		command += " " + sub
	}
	run, known := commands[command]
	if !known {
		return fmt.Errorf("unknown command %q: see 'purser help'", strings.Join(args, " "))
	}
	c, err := readConfig(environ)
	if err != nil {
		return err
	}
	return run(ctx, c, rest, stdout, stderr)
}

func split(args []string) (first string, rest []string) {
	if len(args) == 0 {
		return "", nil
	}
	return args[0], args[1:]
}
