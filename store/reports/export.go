package reports

import (
	"context"

	"github.com/jackc/pgx/v5"

	"purser/fault"
	"purser/ids"
	"purser/metering"
	"purser/store/internal/ledger"
	"purser/store/internal/pg"
)

const (
	// ExportRange is how many entries or payments one read of an export has.
	ExportRange = 500
	// maxExportedFailures is how many failed requests, and how many denials of an identity
	// an export has: the newest.
	maxExportedFailures = 1_000
)

// ExportHead is what is known of an identity beside its entries, payments and checkouts.
type ExportHead struct {
	Wallet        metering.Wallet
	LastSeq       int64 // of its entries
	Subscriptions []SubscriptionFound
	Customers     []CustomerFound
	Failures      []Request
	Denials       []Denial
}

// CustomerFound is the customer of a wallet at a payment provider.
type CustomerFound struct {
	AccountID  string
	CustomerID string
	CreatedAt  int64
}

// PaymentFound is what a wallet's payment or free period brought.
type PaymentFound struct {
	SourceKind    string
	SourceID      string
	AmountCents   int64
	Currency      string
	RefundedCents int64
	DisputedCents int64
	CreatedAt     int64
}

var (
	listCustomersOfWallet = pg.Declare("list customers of a wallet", `
		SELECT n.account_id, c.provider_id, c.created_at
		FROM provider_connections n CROSS JOIN LATERAL (
			SELECT provider_id, created_at FROM provider_customers
			WHERE app_id = $1 AND connection_id = n.id AND wallet_id = $2 LIMIT 1) c
		WHERE n.app_id = $1
		ORDER BY c.created_at`)

	listFailuresOf = pg.Declare("list request failures of an identity", `
		SELECT `+requestColumns+` FROM (
			SELECT `+storedRequestColumns+` FROM request_failures WHERE app_id = $1 AND identity = $2 ORDER BY id DESC LIMIT $3
		) r`+requestJoins+` ORDER BY r.id DESC`)

	listPaymentsOfWallet = pg.Declare("list payments of a wallet", `
		SELECT source_kind, source_id, amount_cents, currency, refunded_cents, disputed_cents, created_at
		FROM provider_payments WHERE app_id = $1 AND wallet_id = $2 AND (source_kind, source_id) > ($3, $4)
		ORDER BY source_kind, source_id LIMIT $5`)
)

// ExportHead begins an export: what is there at one moment.
func (a App) ExportHead(ctx context.Context, identity string) (h ExportHead, err error) {
	if err := a.flushStats(ctx); err != nil {
		return h, err
	}
	return pg.Return(ctx, a.snapshot, func(ctx context.Context, tx appTx) (h ExportHead, err error) {
		w, err := pg.Find(ctx, tx, ledger.SelectWallet, ledger.ReadWallet, fault.New(fault.WalletNotFound), identity)
		if err != nil {
			return h, err
		}
		held, err := tx.WithBalances(ctx, []ledger.Wallet{w})
		if err != nil {
			return h, err
		}
		h.Wallet, h.LastSeq = held[0], w.LastSeq
		if h.Subscriptions, err = pg.Collect(ctx, tx, listSubscriptionsOfWallet, readSubscriptionFound, w.ID, maxPastSubscriptions); err != nil {
			return h, err
		}
		if h.Customers, err = pg.Collect(ctx, tx, listCustomersOfWallet, pgx.RowToStructByPos[CustomerFound], w.ID); err != nil {
			return h, err
		}
		if h.Failures, err = pg.Collect(ctx, tx, listFailuresOf, readRequest, identity, maxExportedFailures); err != nil {
			return h, err
		}
		h.Denials, _, err = tx.denials(ctx, DenialQuery{Identity: identity, Page: pg.Page{Limit: maxExportedFailures}}, a.node.OldestDenial())
		return h, err
	})
}

// ExportEntries reads the entries of a wallet after a number, in ascending order, and the
// events of those that are charges. There are at most ExportRange; none is the end.
func (a App) ExportEntries(ctx context.Context, walletID ids.ID, after int64) ([]JournalLine, []EventFound, error) {
	before := after + ExportRange + 1
	return pg.ReturnBoth(ctx, a.snapshot, func(ctx context.Context, tx appTx) ([]JournalLine, []EventFound, error) {
		lines, err := pg.Collect(ctx, tx, listHistory, readJournalLine, walletID, after, before, nil, nil, 0, lastMoment, true, ExportRange)
		if err != nil {
			return nil, nil, err
		}
		events, err := pg.Collect(ctx, tx, listEventsInRange, readEventFound, walletID, after, before, nil, 0, lastMoment, ExportRange)
		return lines, events, err
	})
}

// ExportPayments reads at most ExportRange payments of a wallet after another one.
func (a App) ExportPayments(ctx context.Context, walletID ids.ID, after PaymentFound) ([]PaymentFound, error) {
	return pg.ListAll(ctx, a.app, listPaymentsOfWallet, pgx.RowToStructByPos[PaymentFound], walletID, after.SourceKind, after.SourceID, ExportRange)
}
