package people

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"purser/ids"
)

// seedPage is how many seeds are read at once.
const seedPage = 500

type sealedSeed struct {
	User   ids.ID
	Sealed []byte
}

// ResealSeeds passes the seed of every authenticator to seal, which returns it
// encrypted again, or nil to keep it. A seed that was replaced meanwhile is kept.
func (d Directory) ResealSeeds(ctx context.Context, seal func(user ids.ID, sealed []byte) (again []byte)) error {
	var last ids.ID
	for {
		seeds, err := collect(ctx, d.handles.pool, "list seeds", pgx.RowToStructByPos[sealedSeed], `
			SELECT user_id, sealed_seed FROM second_factors WHERE user_id > $1 ORDER BY user_id LIMIT $2`, last, seedPage)
		if err != nil {
			return err
		}
		for _, s := range seeds {
			last = s.User
			again := seal(s.User, s.Sealed)
			if again == nil {
				continue
			}
			if _, err := d.handles.pool.Exec(ctx, `
				UPDATE second_factors SET sealed_seed = $3 WHERE user_id = $1 AND sealed_seed = $2`, s.User, s.Sealed, again); err != nil {
				return fmt.Errorf("store: reseal a seed: %w", err)
			}
		}
		if len(seeds) < seedPage {
			return nil
		}
	}
}
