package reports

import (
	"context"

	"github.com/jackc/pgx/v5"

	"purser/store/internal/pg"
	"purser/tenancy"
)

// Progress is how far an application has come on the way to its first charge.
type Progress struct {
	HasKey     bool // one that works now and may do every step after it
	HasCredit  bool
	HasFeature bool
	IsFunded   bool // credits have come into some wallet
	IsUsed     bool // a use was accepted
}

// stepsNeed is what the steps after the key ask of it. A key that only ingests
// would lead into refusals.
var stepsNeed = tenancy.PermissionsOf(tenancy.CreditsWrite, tenancy.FeaturesWrite, tenancy.DepositsWrite, tenancy.EventsIngest)

// A feature remembers that it was used, so the events need not be asked.
var selectProgress = pg.Declare("select progress", `
	SELECT EXISTS (SELECT 1 FROM api_keys k WHERE k.app_id = $1 AND k.permissions @> $2::text[] AND NOT k.revoked
			AND (k.revoked_at IS NULL OR k.revoked_at > $3) AND (k.expires_at IS NULL OR k.expires_at > $3)),
		EXISTS (SELECT 1 FROM credits c WHERE c.app_id = $1),
		EXISTS (SELECT 1 FROM features f WHERE f.app_id = $1),
		EXISTS (SELECT 1 FROM journal j WHERE j.app_id = $1),
		EXISTS (SELECT 1 FROM features f WHERE f.app_id = $1 AND f.deduplication_locked)
	FROM app_state s WHERE s.app_id = $1`)

// Progress tells what of the first steps is done, from what is there now.
func (a App) Progress(ctx context.Context, now int64) (Progress, error) {
	return pg.FindOne(ctx, a.app, selectProgress, pgx.RowToStructByPos[Progress], pg.ErrNoAppState, stepsNeed.Names(), now)
}
