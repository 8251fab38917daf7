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

// Measure is what the sizes of customers are compared by.
type Measure string

const (
	Charged  Measure = "charged"
	Events   Measure = "events"
	Quantity Measure = "quantity"
)

// Customer is a wallet and its identity.
type Customer struct {
	WalletID ids.ID
	Identity string
}

const (
	// comparedWallets and comparedSums are how many active wallets, and how many of their
	// sums by hour, LargestWallets reads at most: a few seconds.
	comparedWallets = 50_000
	comparedSums    = 500_000
)

// Every sum that is read counts for the limit, also those of other features and credits.
var largestWallets = pg.Declare("largest wallets", `
	SELECT s.wallet_id, w.identity, s.size IS NOT NULL, s.read
	FROM (
		SELECT h.wallet_id, (sum(count(*)) OVER ())::bigint AS read, CASE $7 WHEN 'events' THEN sum(h.events) FILTER (WHERE h.counts)
			WHEN 'quantity' THEN sum(h.quantity) FILTER (WHERE h.counts) ELSE sum(h.charged_nanocredits) FILTER (WHERE h.counts) END AS size
		FROM (
			SELECT a.wallet_id, t.events, t.quantity, t.charged_nanocredits, ($5::uuid IS NULL OR t.feature_id = $5) AND ($6::uuid IS NULL OR t.credit_id = $6) AS counts
			FROM unnest($2::uuid[]) AS a (wallet_id) CROSS JOIN LATERAL (
				SELECT u.feature_id, u.credit_id, u.events, u.quantity, u.charged_nanocredits FROM usage_hours u
				WHERE u.app_id = $1 AND u.wallet_id = a.wallet_id AND u.hour >= $3 AND u.hour < $4) t
			LIMIT $8) h
		GROUP BY h.wallet_id
		ORDER BY size DESC NULLS LAST, h.wallet_id LIMIT $9
	) s CROSS JOIN LATERAL (SELECT identity FROM wallets WHERE app_id = $1 AND id = s.wallet_id LIMIT 1) w
	ORDER BY s.size DESC NULLS LAST, s.wallet_id`)

// LargestWallets lists the customers with most of a measure in the range and the feature of
// a query, at most limit. Amounts are those of one credit; events are those of all if it is
// zero. It reports false if there are more customers than it compares.
func (a App) LargestWallets(ctx context.Context, q Query, by Measure, credit ids.ID, limit int) (list []Customer, ok bool, err error) {
	err = a.read(ctx, func(ctx context.Context, tx *pg.Tx) error {
		feature, err := q.feature(ctx, tx)
		if err != nil {
			return err
		}
		wallets, err := pg.Collect(ctx, tx, activeWallets, pgx.RowTo[ids.ID], months(q.Buckets), ids.ID{}, comparedWallets+1)
		if ok = len(wallets) <= comparedWallets; !ok || err != nil {
			return err
		}
		list = nil
		return pg.Each(ctx, tx, largestWallets, func(row pgx.CollectableRow) error {
			var c Customer
			var counts bool
			var read int64
			err := row.Scan(&c.WalletID, &c.Identity, &counts, &read)
			if ok = read <= comparedSums; counts {
				list = append(list, c)
			}
			return err
		}, wallets, q.Buckets.From(), q.Buckets.End, feature, pg.OrNull(credit), string(by), comparedSums+1, limit)
	})
	return list, ok, err
}
