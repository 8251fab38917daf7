package verify

import (
	"context"
	"crypto/sha256"

	"github.com/jackc/pgx/v5"

	"purser/ids"
	"purser/store/internal/pg"
)

var listSeals = pg.Declare("list seals", `
	SELECT wallet_id, seq, seal FROM wallet_seals WHERE app_id = $1 AND wallet_id > $2
	ORDER BY wallet_id LIMIT $3`)

// SealDigest is a hash over the seals of all wallets of an application. Kept outside
// of the database it shows whether entries and seals were changed together, which no
// look at the database alone can.
type SealDigest struct {
	Wallets int64
	Entries int64
	Digest  [sha256.Size]byte
}

// SealDigest hashes the seals of an application in the order of its wallets.
func (a App) SealDigest(ctx context.Context) (d SealDigest, err error) {
	type storedSeal struct {
		Wallet ids.ID
		Seq    int64
		Seal   []byte
	}
	hash := sha256.New()
	hash.Write(a.app.Scope.AppID[:])
	for after := (ids.ID{}); ; {
		page, err := pg.ListAll(ctx, a.app, listSeals, pgx.RowToStructByPos[storedSeal], after, verifyPage)
		if err != nil {
			return d, err
		}
		for _, s := range page {
			hash.Write(s.Wallet[:])
			hash.Write(appendInt(nil, s.Seq))
			hash.Write(s.Seal)
			d.Wallets++
			d.Entries += s.Seq
			after = s.Wallet
		}
		if len(page) < verifyPage {
			hash.Sum(d.Digest[:0])
			return d, nil
		}
	}
}
