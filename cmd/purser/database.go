package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"

	"purser/ids"
	"purser/store"
	"purser/store/embedded"
)

// databaseName is the database of the embedded cluster.
const databaseName = "postgres"

// database is a migrated store and, if embedded, its Postgres server.
type database struct {
	*store.Store
	address string
	server  *embedded.Server
}

// openDatabase starts or connects to Postgres, migrates the schema and opens the store.
func openDatabase(ctx context.Context, c config, log *slog.Logger) (*database, error) {
	db, err := startDatabase(ctx, c, log)
	if err != nil {
		return nil, err
	}
	if err := db.open(ctx, c, log, store.Prepare, false); err != nil {
		return nil, errors.Join(err, db.close())
	}
	return db, nil
}

// openExisting is openDatabase for commands that are of no use on an empty database.
func openExisting(ctx context.Context, c config, log *slog.Logger) (*database, error) {
	if err := requireDatabase(c); err != nil {
		return nil, err
	}
	return openDatabase(ctx, c, log)
}

// openOrCreate is openDatabase for commands that also work on an empty database. It prints
// that it created one: without the server's settings, a command changes the wrong database.
func openOrCreate(ctx context.Context, c config, log *slog.Logger, stderr io.Writer) (*database, error) {
	missing := requireDatabase(c) != nil
	db, err := openDatabase(ctx, c, log)
	if err == nil && missing {
		fmt.Fprintf(stderr, "Created a new database in %s. For the database of a server, name its folder with --data (PURSER_DATA), or set DATABASE_URL.\n", absolute(c.data))
	}
	return db, err
}

// requireDatabase refuses a data folder without a database, where one would be created.
func requireDatabase(c config) error {
	if c.databaseURL == "" && embedded.Missing(c.data) {
		return fmt.Errorf("there is no database in %s: name its folder with --data (PURSER_DATA), or set DATABASE_URL", absolute(c.data))
	}
	return nil
}

// absolute is the whole path of a folder, where that can be found out.
func absolute(folder string) string {
	if path, err := filepath.Abs(folder); err == nil {
		return path
	}
	return folder
}

// startDatabase starts Postgres if it is the embedded one. The store is not open yet.
func startDatabase(ctx context.Context, c config, log *slog.Logger) (*database, error) {
	if c.databaseURL != "" {
		return &database{address: c.databaseURL}, nil
	}
	server, err := embedded.Start(ctx, embedded.Options{Dir: c.data, Log: log})
	if err != nil {
		return nil, err
	}
	return &database{address: server.URL(databaseName), server: server}, nil
}

// open prepares the schema and opens the store, also of a database that is being restored.
func (db *database) open(ctx context.Context, c config, log *slog.Logger, prepare func(context.Context, string, *slog.Logger) error, restoring bool) (err error) {
	if err := prepare(ctx, db.address, log); err != nil {
		return err
	}
	db.Store, err = store.Open(ctx, db.address, store.Options{
		MaxConns: c.databaseConns - store.UsageConns, MinConns: 2, Log: log, Restoring: restoring, KeepFailures: c.keepFailures, KeepDenials: c.keepDenials,
	})
	if err != nil {
		return err
	}
	ids.UseClock(db.Clock().Nanos)
	return nil
}

// close closes the connections, then stops the embedded server. It has no deadline: no
// request depends on it any more.
func (db *database) close() error {
	if db.Store != nil {
		db.Store.Close()
	}
	if db.server != nil {
		return db.server.Stop(context.Background())
	}
	return nil
}

func migrate(ctx context.Context, c config, args []string, stdout, stderr io.Writer) (err error) {
	var distribute, adopt bool
	flags := flag.NewFlagSet("migrate", flag.ContinueOnError)
	flags.BoolVar(&distribute, "distribute", false, "distribute the tables over a Citus cluster")
	flags.BoolVar(&adopt, "adopt-secret-key", false, "accept PURSER_SECRET_KEY in place of a lost key")
	if err := c.parse(flags, args); err != nil {
		return err
	}
	if adopt {
		if err := requireDatabase(c); err != nil {
			return err
		}
	}
	db, err := openOrCreate(ctx, c, slog.New(slog.NewTextHandler(stderr, nil)), stderr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.close()) }()
	if distribute {
		if err := store.Distribute(ctx, db.address); err != nil {
			return err
		}
		fmt.Fprintln(stdout, "The tables are distributed. The workers must accept connections from the coordinator as purser_app and as the owner: see pg_hba.conf there.")
	}
	fmt.Fprintln(stdout, "The schema is up to date.")
	if adopt {
		return reportAdopted(ctx, c, db.Store, stdout)
	}
	return nil
}

func reportAdopted(ctx context.Context, c config, db *store.Store, stdout io.Writer) error {
	secret, err := loadSecret(c)
	if err == nil && secret == "" {
		secret, err = keepSecret(c, newSecret())
	}
	if err != nil {
		return err
	}
	seals, err := secret.vault(c.previousKey)
	if err != nil {
		return err
	}
	lost, err := adoptSecret(ctx, db, seals)
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "The database now uses %s. Stored secrets it can't decrypt: %d. Enter those again.\n", secretSource(c), lost)
	return nil
}
