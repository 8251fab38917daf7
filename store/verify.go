package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"purser/ids"
	"purser/tenancy"
)

// Verification is what one application's books add up to.
type Verification struct {
	Scope       tenancy.Scope
	Wallets     int64
	Entries     int64 // of the journal, and events
	Differences []Difference
	More        bool // there are more than are listed
}

// Difference is one place where the books do not agree with themselves.
type Difference struct {
	Check    string // what should hold
	WalletID ids.ID
	Detail   string
}

// maxDifferences is how many differences of one kind are listed.
const maxDifferences = 100

// Verify recomputes an application from its journal: every balance, debt, counter,
// chain and billed period, and every amount from the price it names. It reads one
// snapshot, so it may run beside a server at work; it changes nothing.
//
// With a moment since, it looks only at wallets that had entries after it, and
// follows each chain from the entry before: what an earlier pass has proven stays
// proven.
func (a App) Verify(ctx context.Context, since time.Time) (v Verification, err error) {
	v.Scope = a.scope
	err = a.snapshot(ctx, func(ctx context.Context, tx appTx) error {
		v.Differences, v.More = nil, false
		if err := tx.takeTime(ctx); err != nil {
			return err
		}
		from := firstID(since)
		counted, err := find(ctx, tx, countVerified, readCounts, errNoAppState, from)
		if err != nil {
			return err
		}
		v.Wallets, v.Entries = counted[0], counted[1]
		for _, check := range verifications {
			found, err := collect(ctx, tx, check.statement, readDifference(check.holds), from, maxDifferences+1)
			if err != nil {
				return err
			}
			listed, more := cut(found, maxDifferences)
			v.Differences = append(v.Differences, listed...)
			v.More = v.More || more
		}
		return nil
	})
	return v, err
}

// takeTime lifts the limits that keep a request from holding others up: nobody
// waits for a look at one moment.
func (tx appTx) takeTime(ctx context.Context) error {
	for _, setting := range []string{
		"SET LOCAL statement_timeout = 0",
		"SET LOCAL idle_in_transaction_session_timeout = 0",
	} {
		if _, err := tx.conn.Exec(ctx, setting); err != nil {
			return fmt.Errorf("store: %s: %w", setting, err)
		}
	}
	return nil
}

// firstID is the lowest id that can have been made at the moment or later. Ids are
// made a little before they are committed, so it starts a minute early.
func firstID(since time.Time) (id ids.ID) {
	if since.IsZero() {
		return id
	}
	ms := since.Add(-time.Minute).UnixMilli()
	for i := range 6 {
		id[i] = byte(ms >> (8 * (5 - i)))
	}
	return id
}

func readCounts(row pgx.CollectableRow) (counts [2]int64, err error) {
	err = row.Scan(&counts[0], &counts[1])
	return counts, err
}

func readDifference(check string) pgx.RowToFunc[Difference] {
	return func(row pgx.CollectableRow) (Difference, error) {
		d := Difference{Check: check}
		var wallet *ids.ID
		err := row.Scan(&wallet, &d.Detail)
		d.WalletID = orZero(wallet)
		return d, err
	}
}
