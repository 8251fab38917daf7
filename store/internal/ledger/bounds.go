package ledger

import (
	"context"

	"github.com/jackc/pgx/v5"

	"purser/billing"
	"purser/fault"
	"purser/keys"
	"purser/metering"
	"purser/store/internal/pg"
)

// Bound is how many rows of a kind an application has at most.
type Bound struct {
	count   pg.Statement
	most    int64
	refusal string // has a place for the number
}

// The rows that people and keys create, and that nothing else bounds.
var (
	BoundOfCredits = Bound{
		pg.Declare("count credits", `SELECT count(*) FROM credits WHERE app_id = $1`),
		billing.MaxItems, "An application has at most %d credits. Nothing was created.",
	}
	BoundOfFeatures = Bound{
		pg.Declare("count features", `SELECT count(*) FROM features WHERE app_id = $1`),
		billing.MaxItems, "An application has at most %d features. Nothing was created.",
	}
	BoundOfPlans = Bound{
		pg.Declare("count plans", `SELECT count(*) FROM plans WHERE app_id = $1`),
		billing.MaxItems, "An application has at most %d plans. Nothing was created.",
	}
	BoundOfAlertRules = Bound{
		pg.Declare("count alert rules", `SELECT count(*) FROM alert_rules WHERE app_id = $1`),
		metering.MaxAlertRules, "An application has at most %d alert rules. Delete one first.",
	}
	// Keys that work at $2. A key that is replaced has its own bound: a rotation never counts
	// against that of the others.
	BoundOfKeys = Bound{
		pg.Declare("count keys", `
		SELECT count(*) FROM api_keys
		WHERE app_id = $1 AND NOT revoked AND (least(revoked_at, expires_at) <= $2) IS NOT TRUE AND replaced_by IS NULL`),
		keys.MaxKeys, "An application has at most %d API keys that work. Revoke one first.",
	}
	BoundOfReplacedKeys = Bound{
		pg.Declare("count replaced keys", `
		SELECT count(*) FROM api_keys
		WHERE app_id = $1 AND NOT revoked AND (least(revoked_at, expires_at) <= $2) IS NOT TRUE AND replaced_by IS NOT NULL`),
		keys.MaxKeys, "%d replaced API keys still work, the maximum. Revoke one first, or rotate without an overlap.",
	}
)

// InsertBounded inserts a row unless it is past the bound. The epoch is locked before, so
// that two transactions can't pass the bound together.
func (tx Tx) InsertBounded(ctx context.Context, b Bound, insert func() error, args ...any) error {
	if _, err := tx.AdvanceEpochBy(ctx, 0); err != nil {
		return err
	}
	if err := insert(); err != nil {
		return err
	}
	return tx.CheckBound(ctx, b, args...)
}

// CheckBound refuses what the transaction inserted past the bound. A row that is there
// already was refused as such before. The transaction has locked the epoch.
func (tx Tx) CheckBound(ctx context.Context, b Bound, args ...any) error {
	number, err := pg.Find(ctx, tx, b.count, pgx.RowTo[int64], pg.ErrNoAppState, args...)
	if err == nil && number > b.most {
		err = fault.Newf(fault.InvalidRequest, b.refusal, b.most)
	}
	return err
}
