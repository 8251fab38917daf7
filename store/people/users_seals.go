package people

import (
	"context"

	"github.com/jackc/pgx/v5"

	"purser/ids"
	"purser/store/internal/pg"
)

// sealedPage is how many sealed values are read at once.
const sealedPage = 500

// Reseal returns a sealed value encrypted again, or nil to keep it.
type Reseal func(row ids.ID, sealed []byte) (again []byte)

// ResealSeeds passes the seed of every authenticator to seal, by its user.
func (d Directory) ResealSeeds(ctx context.Context, seal Reseal) error {
	return d.handles.reseal(ctx, seal, "seeds",
		`SELECT user_id, sealed_seed FROM second_factors WHERE user_id > $1 ORDER BY user_id LIMIT $2`,
		`UPDATE second_factors SET sealed_seed = $3 WHERE user_id = $1 AND sealed_seed = $2`)
}

// Reseal passes every waiting mail to seal.
func (o Outbox) Reseal(ctx context.Context, seal Reseal) error {
	return o.handles.reseal(ctx, seal, "mails",
		`SELECT id, sealed FROM mails WHERE id > $1 ORDER BY id LIMIT $2`,
		`UPDATE mails SET sealed = $3 WHERE id = $1 AND sealed = $2`)
}

// reseal passes every value that list pages through to seal. A value that was replaced
// meanwhile is kept.
func (h *Handles) reseal(ctx context.Context, seal Reseal, name, list, update string) error {
	type value struct {
		Row    ids.ID
		Sealed []byte
	}
	for last := (ids.ID{}); ; {
		page, err := pg.CollectSQL(ctx, h.pool, "list "+name, pgx.RowToStructByPos[value], list, last, sealedPage)
		if err != nil {
			return err
		}
		for _, v := range page {
			last = v.Row
			again := seal(v.Row, v.Sealed)
			if again == nil {
				continue
			}
			if _, err := pg.ExecSQL(ctx, h.pool, "reseal "+name, update, v.Row, v.Sealed, again); err != nil {
				return err
			}
		}
		if len(page) < sealedPage {
			return nil
		}
	}
}
