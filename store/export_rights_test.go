package store

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"purser/migrations"
	"purser/store/internal/pg"
)

// CheckRights says how grants and policies differ from the migrations.
func CheckRights(ctx context.Context, conn *pgx.Conn) error {
	repairs, err := pg.RightsRepairs(ctx, conn, false)
	if err == nil && len(repairs) > 0 {
		err = errors.New(pg.Differ(repairs))
	}
	return err
}

// GrantedTables are those that the migrations grant on.
func GrantedTables(tb testing.TB) []string {
	r, err := pg.ExpectedRights(migrations.FS)
	if err != nil {
		tb.Fatal(err)
	}
	return slices.Sorted(maps.Keys(r.Tables))
}

// ReadGrants reads the grants of migrations.
func ReadGrants(files fs.FS) error {
	_, err := pg.ExpectedRights(files)
	return err
}
