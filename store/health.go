package store

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Ready reports why requests cannot be served now, or nil: the database must
// answer and know every migration that this binary was built with.
func (s *Store) Ready(ctx context.Context) error {
	applied, err := s.appliedMigrations(ctx)
	if err != nil {
		return fmt.Errorf("store: the database does not answer: %w", err)
	}
	missing, err := missingMigrations(applied)
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		return fmt.Errorf("store: the schema lacks the migrations %s: run 'purser migrate'", strings.Join(missing, ", "))
	}
	return nil
}

// appliedMigrations is empty where nothing was migrated yet: then there is no
// table of them, or none that we may read.
func (s *Store) appliedMigrations(ctx context.Context) (applied []string, err error) {
	rows, err := s.pool.Query(ctx, `SELECT name FROM schema_migrations`)
	if err == nil {
		applied, err = pgx.CollectRows(rows, pgx.RowTo[string])
	}
	switch sqlState(err) {
	case undefinedTable, insufficientPrivilege:
		return nil, nil
	}
	return applied, err
}

// CheckDurable refuses a server that may lose what it has acknowledged.
func (s *Store) CheckDurable(ctx context.Context) error {
	for _, setting := range []string{"fsync", "full_page_writes", "synchronous_commit"} {
		var value string
		if err := s.pool.QueryRow(ctx, `SELECT current_setting($1)`, setting).Scan(&value); err != nil {
			return fmt.Errorf("store: reading %s: %w", setting, err)
		}
		if value == "off" {
			return fmt.Errorf("store: the database has %s = off, so it may lose what it has acknowledged: turn it on", setting)
		}
	}
	return nil
}

// withoutPassword keeps the reason why an address cannot be parsed and drops the
// address itself, which pgx repeats with everything but the password.
func withoutPassword(err error) error {
	var parse *pgconn.ParseConfigError
	if errors.As(err, &parse) {
		return errors.New("it is not a valid postgres:// address")
	}
	return err
}
