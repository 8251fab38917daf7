package verify

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"purser/ids"
	"purser/store/internal/pg"
)

// Kind is what a scheduled verification reads.
type Kind string

// The kinds of scheduled verification.
const (
	NewEntries Kind = "new" // what no pass has verified
	AllEntries Kind = "all"
	// WholeInstallation reads what belongs to no application. Its subject is the zero
	// id.
	WholeInstallation Kind = "installation"
)

// Run is a verification that has ended.
type Run struct {
	Kind        Kind
	StartedAt   int64
	FinishedAt  int64
	Wallets     int64
	Entries     int64
	Differences int64
	Failure     string   // why it did not come to its end; empty when it did
	Lines       []string // the first differences
	RetryAt     int64    // when it is due again before its interval is over; zero for not before
}

// maxRunLines is how many differences of a run are kept for people to see. The log
// and the command list all of them.
const maxRunLines = 20

var (
	// The claim lasts as long as the verification may take. One that ran out without a
	// result belongs to a node that has died or was stopped: another one follows.
	claimVerification = pg.Declare("claim verification", `
		INSERT INTO verifications (app_id, org_id, kind, claimed_at, claimed_until) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (app_id, kind) DO UPDATE SET claimed_at = excluded.claimed_at, claimed_until = excluded.claimed_until
		WHERE verifications.claimed_until <= excluded.claimed_at AND (verifications.claimed_at <= $6 OR verifications.claimed_until > 0)`)

	selectClaim = pg.Declare("select claim of verification", `
		SELECT claimed_at, claimed_until FROM verifications WHERE app_id = $1 AND kind = $2`)

	finishVerification = pg.Declare("finish verification", `
		UPDATE verifications SET claimed_until = @claimed_until, started_at = claimed_at, finished_at = @finished_at, wallet_count = @wallet_count, entry_count = @entry_count,
			differences = @differences, failure = @failure, lines = @lines
		WHERE app_id = $1 AND kind = @kind AND claimed_at = @claimed_at`)

	listIdentities = pg.Declare("verify list identities", `
		SELECT id, identity FROM wallets WHERE app_id = $1 AND id = ANY ($2)`)

	listVerifications = pg.Declare("list verifications", `
		SELECT kind, started_at, finished_at, wallet_count, entry_count, differences, failure, lines, claimed_until
		FROM verifications WHERE app_id = $1 AND finished_at IS NOT NULL
		ORDER BY kind DESC`)
)

// Claim reports whether this node is to verify the application now: the
// last time is at least the interval ago, and no other node is verifying it.
func (a App) Claim(ctx context.Context, kind Kind, now int64, every, limit time.Duration) (bool, error) {
	return pg.Return(ctx, a.transact, func(ctx context.Context, tx appTx) (claimed bool, err error) {
		made, err := tx.ExecAny(ctx, claimVerification, a.app.Scope.OrgID, kind, now, now+limit.Milliseconds(), now-every.Milliseconds())
		if err != nil {
			return claimed, err
		}
		claimed = made == 1
		// Also when it was refused: the claim may be one of an older release, which does
		// not keep it where all nodes see it.
		claim, err := pg.Find(ctx, tx, selectClaim, pgx.RowToStructByPos[claimTimes], pg.ErrNoAppState, kind)
		if err != nil {
			return claimed, err
		}
		_, err = tx.Conn.Exec(ctx, keepClaim, a.app.Scope.AppID, kind, claim.At, claim.Until)
		return claimed, err
	})
}

// Finish keeps the result of a claimed verification, with lines about the first
// differences. A node that was too slow, so that another has claimed it since, keeps
// nothing.
func (a App) Finish(ctx context.Context, r Run, found []Difference) error {
	found, _ = pg.Cut(found, maxRunLines)
	return a.transact(ctx, func(ctx context.Context, tx appTx) error {
		lines, err := tx.describe(ctx, found)
		if err != nil {
			return err
		}
		if _, err := tx.ExecAny(ctx, finishVerification, pg.Named{
			"kind": r.Kind, "claimed_at": r.StartedAt, "finished_at": r.FinishedAt, "wallet_count": r.Wallets,
			"entry_count": r.Entries, "differences": r.Differences, "failure": r.Failure, "lines": lines,
			"claimed_until": r.RetryAt,
		}); err != nil {
			return err
		}
		_, err = tx.Conn.Exec(ctx, endClaim, a.app.Scope.AppID, r.Kind, r.StartedAt, r.RetryAt)
		return err
	})
}

// describe is a line for each difference, with the current identity of its wallet: the
// one that the verification has read may have been erased since.
func (tx appTx) describe(ctx context.Context, found []Difference) ([]string, error) {
	wallets, lines := make([]ids.ID, len(found)), make([]string, len(found))
	for i, d := range found {
		wallets[i] = d.WalletID
	}
	identities, err := pg.CollectMap(ctx, tx, listIdentities, func(row pgx.CollectableRow) (id ids.ID, identity string, err error) {
		err = row.Scan(&id, &identity)
		return id, identity, err
	}, wallets)
	if err != nil {
		return nil, err
	}
	for i, d := range found {
		d.Identity = identities[d.WalletID]
		lines[i] = d.String()
	}
	return lines, nil
}

// Runs are the last verifications of each kind that have ended.
func (a App) Runs(ctx context.Context) ([]Run, error) {
	return pg.ListAll(ctx, a.app, listVerifications, pgx.RowToStructByPos[Run])
}

// String says in one line what differs: for which customer, which rule is broken,
// and what was expected and found.
func (d Difference) String() string {
	where := ""
	if !d.WalletID.IsZero() {
		where = d.WalletID.Format(ids.Wallet)
		if d.Identity != "" {
			where += fmt.Sprintf(" (customer %q)", d.Identity)
		}
		where += ": "
	}
	return where + "broken rule: " + d.Check + ": " + d.Detail
}
