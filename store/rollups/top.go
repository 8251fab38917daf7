package rollups

import (
	"context"

	"github.com/jackc/pgx/v5"

	"purser/ids"
	"purser/metering"
	"purser/metering/rollup"
	"purser/store/internal/pg"
)

// TopWallet is a customer that used most of a credit in a month.
type TopWallet struct {
	WalletID ids.ID
	Identity string
	CreditID ids.ID
	Credit   string // its key
	Events   int64
	Charged  metering.Total
}

// Each credit is read from the end of the index.
var topWallets = pg.Declare("top wallets of a month", `
	SELECT t.wallet_id, w.identity, c.id, c.key, t.events, t.charged_nanocredits::text
	FROM credits c CROSS JOIN LATERAL (
		SELECT u.wallet_id, u.events, u.charged_nanocredits FROM usage_months u
		WHERE u.app_id = $1 AND u.month = $2 AND u.credit_id = c.id
		ORDER BY u.charged_nanocredits DESC, u.wallet_id DESC LIMIT $3
	) t CROSS JOIN LATERAL (SELECT identity FROM wallets WHERE app_id = $1 AND id = t.wallet_id LIMIT 1) w
	WHERE c.app_id = $1
	ORDER BY c.key, t.charged_nanocredits DESC, t.wallet_id DESC`)

// Top lists the customers that were charged most in the month of UTC that a moment is in,
// at most limit of each credit.
func (a App) Top(ctx context.Context, moment int64, limit int) ([]TopWallet, error) {
	return pg.Return(ctx, a.read, func(ctx context.Context, tx *pg.Tx) ([]TopWallet, error) {
		return pg.Collect(ctx, tx, topWallets, readTopWallet, rollup.MonthOf(moment), limit)
	})
}

func readTopWallet(row pgx.CollectableRow) (w TopWallet, err error) {
	err = row.Scan(&w.WalletID, &w.Identity, &w.CreditID, &w.Credit, &w.Events, (*pg.Total)(&w.Charged))
	return w, err
}
