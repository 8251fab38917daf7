package reports

import (
	"context"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"purser/fault"
	"purser/ids"
	"purser/store/internal/ledger"
	"purser/store/internal/pg"
)

// walletsScanned is how many wallets one page of a search reads for identities that
// contain the text. An index for any part of an identity would be written with every new
// wallet, and the policies keep Postgres from using one for text patterns.
const walletsScanned = 7_000

// WalletSearch finds wallets by a part of their identity, in any case: first those that
// begin with it, ordered by identity, then those that contain it, newest first. The zero
// position is the beginning.
type WalletSearch struct {
	Text   string
	After  string // among those that begin with the text: the identity behind which the page starts
	Inside bool   // the page has those that contain the text, before the id of the page
	Begins bool   // only those that begin with the text are searched for
	pg.Page
}

var (
	searchWallets = pg.Declare("search wallets", `
		SELECT `+pg.Prefixed("w", ledger.WalletColumns)+`
		FROM unnest($2::text[], $3::text[]) AS t (first, last) CROSS JOIN LATERAL (
			SELECT `+ledger.WalletColumns+`
			FROM wallets WHERE app_id = $1 AND identity >= t.first AND identity <= t.last AND identity > $4
			ORDER BY identity LIMIT $5
		) w
		ORDER BY w.identity LIMIT $5`)

	// Wallets are stored about in the order of their ids, so that a scan by id reads few
	// blocks.
	scanWallets = pg.Declare("scan wallets for a text", `
		SELECT `+ledger.WalletColumns+` FROM (
			SELECT `+ledger.WalletColumns+`
			FROM wallets WHERE app_id = $1 AND id < $2 ORDER BY id DESC LIMIT $3
		) w
		WHERE strpos(lower(identity), $4) > 0 AND NOT EXISTS (SELECT FROM unnest($5::text[]) AS t (first) WHERE starts_with(w.identity, t.first))
		ORDER BY id DESC LIMIT $6`)

	walletScanEnd = pg.Declare("find end of wallets scan", `
		SELECT id FROM wallets WHERE app_id = $1 AND id < $2 ORDER BY id DESC OFFSET $3 LIMIT 1`)

	selectCustomer = pg.Declare("select wallet of a customer", `
		SELECT id FROM wallets WHERE app_id = $1 AND identity = ANY ($2) ORDER BY identity <> $3 LIMIT 1`)

	selectSubscriptionWallet = pg.Declare("select wallet of a subscription", `
		SELECT wallet_id FROM subscriptions WHERE app_id = $1 AND id = $2`)
)

// SearchWallets finds wallets and returns where the search goes on, or nil at the end. A
// page may be partial, even empty, before the end.
func (a App) SearchWallets(ctx context.Context, q WalletSearch) ([]WalletFound, *WalletSearch, error) {
	return pg.ReturnBoth(ctx, a.snapshot, func(ctx context.Context, tx appTx) ([]WalletFound, *WalletSearch, error) {
		rows, next, err := tx.searchWallets(ctx, q)
		if err != nil {
			return nil, nil, err
		}
		list, err := tx.describe(ctx, rows)
		return list, next, err
	})
}

func (tx appTx) searchWallets(ctx context.Context, q WalletSearch) (rows []ledger.Wallet, next *WalletSearch, err error) {
	first := spellings(q.Text)
	if !q.Inside {
		// Text is sorted bytewise, so every identity with the prefix lies between the
		// prefix and the prefix followed by the last character.
		last := make([]string, len(first))
		for i, text := range first {
			last[i] = text + string(utf8.MaxRune)
		}
		rows, err = pg.Collect(ctx, tx, searchWallets, ledger.ReadWallet, first, last, q.After, q.OneMore())
		if err != nil {
			return nil, nil, err
		}
		if rows, more := pg.Cut(rows, q.Limit); more {
			return rows, &WalletSearch{Text: q.Text, After: rows[len(rows)-1].Identity, Begins: q.Begins, Page: q.Page}, nil
		}
		if q.Begins {
			return rows, nil, nil
		}
	}
	room := pg.Page{Before: q.Before, Limit: q.Limit - len(rows)}
	found, err := pg.Collect(ctx, tx, scanWallets, ledger.ReadWallet, room.Start(), walletsScanned, strings.ToLower(q.Text), first, room.OneMore())
	if err != nil {
		return nil, nil, err
	}
	found, more := pg.Cut(found, room.Limit)
	rows = append(rows, found...)
	next = &WalletSearch{Text: q.Text, Inside: true, Page: q.Page}
	if more {
		if len(found) > 0 {
			next.Before = found[len(found)-1].ID
		}
		return rows, next, nil
	}
	end, err := pg.Collect(ctx, tx, walletScanEnd, pgx.RowTo[ids.ID], room.Start(), walletsScanned-1)
	if err != nil || len(end) == 0 {
		return rows, nil, err
	}
	next.Before = end[0]
	return rows, next, nil
}

// spellings are a text in the cases in which identities are usually written.
func spellings(text string) []string {
	lower := strings.ToLower(text)
	list := []string{text, lower, strings.ToUpper(text)}
	if r, size := utf8.DecodeRuneInString(lower); size > 0 {
		list = append(list, strings.ToUpper(string(r))+lower[size:])
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// customer is the wallet of an identity, written as it is or else in a usual spelling. There
// may be none.
func (tx appTx) customer(ctx context.Context, identity string) ([]ids.ID, error) {
	return pg.Collect(ctx, tx, selectCustomer, pgx.RowTo[ids.ID], spellings(identity), identity)
}

func (a App) SubscriptionWallet(ctx context.Context, id ids.ID) (ids.ID, error) {
	return pg.FindOne(ctx, a.app, selectSubscriptionWallet, pgx.RowTo[ids.ID], fault.New(fault.SubscriptionNotFound), id)
}
