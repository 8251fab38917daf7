package store

import "purser/store/internal/pg"

var (
	// Features are locked before a plan refers to them, so that no price changes between
	// the check and the reference.
	holdFeatures = pg.Declare("hold features", `
		SELECT id FROM features WHERE app_id = $1 AND key = ANY ($2) ORDER BY id FOR SHARE`)
)
