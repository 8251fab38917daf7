package identities

import (
	"cmp"
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"purser/fault"
	"purser/ids"
	"purser/metering"
	"purser/store/internal/ledger"
	"purser/store/internal/pg"
	"purser/store/payments"
	"purser/store/queue"
	"purser/store/verify"
)

// Rename gives a wallet another identity. The wallet keeps its id, its journal, its
// balances and its subscription; the old identity has no wallet afterwards.
type Rename struct {
	ID             ids.ID
	From, To       string // identities
	WalletID       ids.ID // that must be the one of From; zero for any
	IdempotencyKey string
	By             ids.ID // a user; zero for an API key
	CreatedAt      int64
}

// isOf reports whether a rename may be of a wallet.
func (r Rename) isOf(wallet ids.ID) bool { return r.WalletID.IsZero() || r.WalletID == wallet }

// followedRows is how many rows of a table one transaction moves or deletes: it holds the
// wallet, and batches of events of all tenants wait for that.
const followedRows = 1_000

// followedTable has rows that name an identity, which a change moves or erases in parts.
type followedTable struct{ list, move, erase pg.Statement }

// settleDelay is how long after a change of identity nodes may still write requests and
// denials of the old one, which they collect for some seconds.
const settleDelay = int64(time.Minute / time.Millisecond)

// The two kinds of changes.
const (
	changeRename  = "rename"
	changeErasure = "erasure"
)

// identityChange is a stored change. The identities are empty once they were erased.
type identityChange struct {
	ID             ids.ID
	WalletID       ids.ID
	Kind           string
	From, To       string
	Reason         string
	IdempotencyKey string
	By             ids.ID
	CreatedAt      int64
	Settled        bool
}

const identityChangeColumns = `c.id, c.wallet_id, c.kind, c.from_identity, c.to_identity, c.reason, c.idempotency_key, c.user_id, c.created_at, c.settled`

var (
	selectIdentityChange = pg.Declare("select change of identity", `
		SELECT `+identityChangeColumns+`
		FROM identity_changes c WHERE c.app_id = $1 AND c.kind = $2 AND c.idempotency_key = $3`)

	nextUnsettledChange = pg.Declare("select next unsettled change of identity", `
		SELECT `+identityChangeColumns+`
		FROM identity_changes c WHERE c.app_id = $1 AND c.wallet_id = $2 AND NOT c.settled AND c.id > $3 ORDER BY c.id LIMIT 1`)

	insertIdentityChange = pg.Declare("insert change of identity", `
		INSERT INTO identity_changes (app_id, id, org_id, wallet_id, kind, from_identity, to_identity, reason, idempotency_key, user_id, created_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`)

	settleIdentityChange = pg.Declare("settle change of identity", `
		UPDATE identity_changes SET settled = true WHERE app_id = $1 AND id = $2`)

	setIdentity = pg.Declare("set identity", `
		UPDATE wallets SET identity = $3, version = version + $4 WHERE app_id = $1 AND id = $2`)

	moveAlertRules = pg.Declare("move alert rules", `
		UPDATE alert_rules SET identity = $3 WHERE app_id = $1 AND identity = $2`)

	// Rows of the identity are the wallet's until another wallet gets it: by its creation or by
	// a rename. The change itself got its id before it committed.
	selectNextOwner = pg.Declare("select next owner of an identity", `
		SELECT next.id
		FROM (
			SELECT c.id FROM identity_changes c WHERE c.app_id = $1 AND c.id > $3 AND c.to_identity = $2
			UNION ALL
			SELECT greatest(owner.id, $3)
			FROM (
				SELECT w.id FROM wallets w WHERE w.app_id = $1 AND w.identity = $2
				UNION ALL
				SELECT c.wallet_id FROM identity_changes c WHERE c.app_id = $1 AND c.id > $3 AND c.from_identity = $2
			) owner
			WHERE NOT EXISTS (
				SELECT 1 FROM identity_changes c WHERE c.app_id = $1 AND c.wallet_id = owner.id AND c.id > $3 AND c.to_identity = $2)
			UNION ALL
			SELECT 'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid
		) next
		ORDER BY next.id LIMIT 1`)

	// The last change, before one, of another wallet that had the identity and may still have
	// rows of it.
	selectLastLeft = pg.Declare("select unsettled change from an identity", `
		SELECT c.id FROM identity_changes c
		WHERE c.app_id = $1 AND NOT c.settled AND c.from_identity = $2 AND c.wallet_id <> $3 AND c.id < $4 ORDER BY c.id DESC LIMIT 1`)

	// A customer may have hundreds of thousands of these rows.
	followedTables = []followedTable{
		{
			list: pg.Declare("list denials to follow", `
				SELECT d.id FROM denial_records d WHERE d.app_id = $1 AND d.identity = $2 AND d.id > $3 AND d.id < $4 ORDER BY d.id LIMIT $5`),
			move:  pg.Declare("move denials", `UPDATE denial_records SET identity = $3 WHERE app_id = $1 AND id = ANY ($2)`),
			erase: pg.Declare("erase denials", `DELETE FROM denial_records WHERE app_id = $1 AND id = ANY ($2)`),
		},
		{
			list: pg.Declare("list request failures to follow", `
				SELECT f.id FROM request_failures f WHERE f.app_id = $1 AND f.identity = $2 AND f.id > $3 AND f.id < $4 ORDER BY f.id LIMIT $5`),
			move:  pg.Declare("move request failures", `UPDATE request_failures SET identity = $3 WHERE app_id = $1 AND id = ANY ($2)`),
			erase: pg.Declare("erase request failures", `DELETE FROM request_failures WHERE app_id = $1 AND id = ANY ($2)`),
		},
	}

	moveRequests = pg.Declare("move requests", `
		UPDATE recent_requests SET identity = $5 WHERE app_id = $1 AND identity = $2 AND id > $3 AND id < $4`)
)

func readIdentityChange(row pgx.CollectableRow) (c identityChange, err error) {
	var from, to, reason *string
	var by *ids.ID
	err = row.Scan(&c.ID, &c.WalletID, &c.Kind, &from, &to, &reason, &c.IdempotencyKey, &by, &c.CreatedAt, &c.Settled)
	c.From, c.To, c.Reason, c.By = pg.OrZero(from), pg.OrZero(to), pg.OrZero(reason), pg.OrZero(by)
	return c, err
}

// Rename gives a wallet another identity, once for an idempotency key: a repeated one
// returns the wallet as it is, and a different request with it is refused. So is any once
// the wallet was erased. No payment operation of either identity runs meanwhile. Caches of
// all nodes have the wallet with another version and another epoch, so that none decides by
// them.
func (a App) Rename(ctx context.Context, requested Rename) (w metering.Wallet, duplicate bool, err error) {
	err = pg.RetryKeyed(ctx, a.transact, func(ctx context.Context, tx transaction) error {
		w, duplicate, err = tx.rename(ctx, requested)
		return err
	})
	a.app.WalletChanged(requested.From)
	a.app.WalletChanged(requested.To)
	return w, duplicate, err
}

// beginChange holds the identities, so that no payment operation runs, and locks their
// wallets. It finds an earlier change with the key.
func (tx transaction) beginChange(ctx context.Context, kind, key string, identities ...string) (fences map[string]int64, locked []ledger.Wallet, earlier []identityChange, err error) {
	if fences, err = tx.HoldIdentities(ctx, identities...); err != nil {
		return nil, nil, nil, err
	}
	if fences == nil {
		return nil, nil, nil, fault.New(fault.OperationInProgress)
	}
	if locked, err = tx.LockWallets(ctx, identities...); err != nil {
		return nil, nil, nil, err
	}
	earlier, err = pg.Collect(ctx, tx, selectIdentityChange, readIdentityChange, kind, key)
	return fences, locked, earlier, err
}

func (tx transaction) rename(ctx context.Context, requested Rename) (w metering.Wallet, duplicate bool, err error) {
	fences, locked, earlier, err := tx.beginChange(ctx, changeRename, requested.IdempotencyKey, requested.From, requested.To)
	if err != nil {
		return w, false, err
	}
	if len(earlier) == 1 {
		c := earlier[0]
		if c.From != requested.From || c.To != requested.To || !requested.isOf(c.WalletID) {
			return w, false, fault.New(fault.IdempotencyConflict)
		}
		return tx.renamedBefore(ctx, c, requested)
	}
	from, err := renamedWallet(locked, requested)
	if err != nil {
		return w, false, err
	}
	// Later operations get higher numbers than those that the wallet has had.
	if err := tx.RaiseFence(ctx, requested.To, fences[requested.From]); err != nil {
		return w, false, err
	}
	err = tx.changeIdentity(ctx, from, identityChange{
		ID: requested.ID, WalletID: from.ID, Kind: changeRename, From: requested.From, To: requested.To,
		IdempotencyKey: requested.IdempotencyKey, By: requested.By, CreatedAt: requested.CreatedAt,
	}, requested.To)
	if err != nil {
		return w, false, err
	}
	if err := tx.DeleteLease(ctx, requested.From); err != nil {
		return w, false, err
	}
	if w, err = tx.walletByID(ctx, from.ID); err != nil {
		return w, false, err
	}
	// The log names wallets by their ids, which say nothing about a customer.
	return w, false, tx.Audit(ctx, "wallet.rename", from.ID.Format(ids.Wallet), nil, nil)
}

// renamedBefore answers a repeated key. A wallet that was erased meanwhile is not shown: it
// can't be linked to the identities that it had, also before they are forgotten.
func (tx transaction) renamedBefore(ctx context.Context, c identityChange, requested Rename) (w metering.Wallet, duplicate bool, err error) {
	if w, err = tx.walletByID(ctx, c.WalletID); err != nil {
		return w, false, err
	}
	if metering.IsTombstone(w.Identity) {
		return metering.Wallet{}, false, fault.New(fault.IdempotencyConflict)
	}
	return w, c.ID != requested.ID, nil
}

// renamedWallet is the wallet that a rename is about, among the locked ones.
func renamedWallet(locked []ledger.Wallet, requested Rename) (from *ledger.Wallet, err error) {
	taken := false
	for i := range locked {
		if locked[i].Identity == requested.From && requested.isOf(locked[i].ID) {
			from = &locked[i]
		}
		taken = taken || locked[i].Identity == requested.To
	}
	switch {
	case from == nil:
		return nil, fault.New(fault.WalletNotFound)
	case taken:
		return nil, fault.New(fault.IdentityTaken)
	}
	return from, nil
}

func (tx transaction) walletByID(ctx context.Context, id ids.ID) (metering.Wallet, error) {
	row, err := pg.Find(ctx, tx, ledger.SelectWalletByID, ledger.ReadWallet, fault.New(fault.WalletNotFound), id)
	if err != nil {
		return metering.Wallet{}, err
	}
	wallets, err := tx.WithBalances(ctx, []ledger.Wallet{row})
	if err != nil {
		return metering.Wallet{}, err
	}
	return wallets[0], nil
}

// changeIdentity gives a locked wallet another identity. Its version and the
// application's epoch advance: a node that has the wallet in its cache under the old
// identity fails the write of what it decides by that, also one of a release that does not
// know of renames. It may have the wallet under both identities, until it reads the old one.
func (tx transaction) changeIdentity(ctx context.Context, w *ledger.Wallet, c identityChange, to string) error {
	if err := tx.Exec(ctx, setIdentity, 1, w.ID, to, pg.VersionStep()); err != nil {
		return err
	}
	if err := tx.Exec(ctx, insertIdentityChange, 1, c.ID, tx.Scope.OrgID, w.ID, c.Kind, c.From, pg.OrNull(c.To), pg.OrNull(c.Reason), c.IdempotencyKey,
		pg.OrNull(c.By), c.CreatedAt); err != nil {
		return err
	}
	if err := verify.IdentityChanged(ctx, tx.Tx, w.ID, w.Identity, to); err != nil {
		return err
	}
	if c.Kind == changeRename {
		if _, err := tx.ExecAny(ctx, moveAlertRules, c.From, to); err != nil {
			return err
		}
	}
	if err := payments.RelabelCustomers(ctx, tx.Tx, w.ID, c.CreatedAt); err != nil {
		return err
	}
	if err := tx.Enqueue(ctx, queue.Job{Kind: queue.JobIdentity, Object: w.ID.String(), DueAt: c.CreatedAt}); err != nil {
		return err
	}
	if _, err := tx.AdvanceEpoch(ctx); err != nil {
		return err
	}
	return tx.ScheduleWake(ctx)
}

// FinishChange moves or erases what nodes wrote by the old identities of a wallet, and
// returns when to do so again; zero when nothing more can come. Both times are of the real
// clock: an advanced test clock makes nodes write no earlier.
func (a App) FinishChange(ctx context.Context, wallet ids.ID, now int64) (next int64, err error) {
	var at followed
	for !at.done {
		from := at
		err := a.transact(ctx, func(ctx context.Context, tx transaction) (err error) {
			at, err = tx.followNext(ctx, wallet, from, now)
			return err
		})
		if err != nil {
			return 0, err
		}
		next = cmp.Or(at.due, next)
	}
	if at.erased {
		if err = a.eraseProperties(ctx, wallet); err == nil {
			err = a.eraseAnswers(ctx, wallet)
		}
	}
	return next, err
}

// followed is how far the changes of a wallet are followed.
type followed struct {
	change ids.ID // the last one that was followed to its end
	table  int    // of the next one: its index among followedTables, and its last row
	row    ids.ID
	due    int64 // when the last change is to be followed again; zero for never
	erased bool  // the wallet
	done   bool  // there is no further change
}

// followNext follows the next unsettled change, as far as one transaction may.
func (tx transaction) followNext(ctx context.Context, wallet ids.ID, from followed, now int64) (to followed, err error) {
	w, err := tx.LockWalletByID(ctx, wallet)
	if err != nil {
		return to, err
	}
	erased := metering.IsTombstone(w.Identity)
	into, err := tx.placeOfRows(ctx, w)
	if err != nil {
		return to, err
	}
	changes, err := pg.Collect(ctx, tx, nextUnsettledChange, readIdentityChange, wallet, from.change)
	if err != nil {
		return to, err
	}
	if len(changes) == 0 {
		return tx.followParked(ctx, w, into, from, now)
	}
	c := changes[0]
	if c.From != into { // or it got its identity back
		if to, more, err := tx.followIdentity(ctx, c, into, erased, from); err != nil || more {
			return to, err
		}
	}
	to.change = c.ID
	if settled := pg.TimeOfID(c.ID) + settleDelay; now < settled {
		to.due = settled
		return to, nil
	}
	return to, tx.Exec(ctx, settleIdentityChange, 1, c.ID)
}

// lastID follows all other ids.
var lastID = pg.Page{}.Start()

// parked is the name under which rows of a wallet wait for its identity. No request can have it.
func parked(wallet ids.ID) string { return metering.Tombstone(wallet) }

// placeOfRows returns the identity to which rows of old ones are moved: the current one, unless
// another wallet had it a moment ago. Only their identity and their age tell whose rows are, so
// older ones of this wallet wait until the other has all of its own.
func (tx transaction) placeOfRows(ctx context.Context, w ledger.Wallet) (string, error) {
	left, err := pg.Collect(ctx, tx, selectLastLeft, pgx.RowTo[ids.ID], w.Identity, w.ID, lastID)
	if len(left) > 0 {
		return parked(w.ID), nil
	}
	return w.Identity, err
}

// rowsOf returns the ids between which rows of an old identity are the wallet's.
func (tx transaction) rowsOf(ctx context.Context, c identityChange) (after, before ids.ID, err error) {
	left, err := pg.Collect(ctx, tx, selectLastLeft, pgx.RowTo[ids.ID], c.From, c.WalletID, c.ID)
	if err == nil && len(left) > 0 {
		after, err = pg.Find(ctx, tx, selectNextOwner, pgx.RowTo[ids.ID], pg.ErrNoAppState, c.From, left[0])
	}
	if err == nil {
		before, err = pg.Find(ctx, tx, selectNextOwner, pgx.RowTo[ids.ID], pg.ErrNoAppState, c.From, c.ID)
	}
	return after, before, err
}

// followParked moves or erases rows that waited, after all changes were followed.
func (tx transaction) followParked(ctx context.Context, w ledger.Wallet, into string, from followed, now int64) (to followed, err error) {
	erased := metering.IsTombstone(w.Identity)
	if !erased && into == parked(w.ID) {
		return followed{due: now + settleDelay, done: true}, nil
	}
	waiting := identityChange{ID: w.ID, WalletID: w.ID, From: parked(w.ID)}
	if to, more, err := tx.followIdentity(ctx, waiting, into, erased, from); err != nil || more {
		return to, err
	}
	if erased {
		_, err = tx.ExecAny(ctx, forgetIdentities, w.ID)
	}
	return followed{done: true, erased: erased}, err
}

// followIdentity moves rows of an old identity into another, or erases them. It returns how
// far it came if there may be more.
func (tx transaction) followIdentity(ctx context.Context, c identityChange, into string, erased bool, from followed) (to followed, more bool, err error) {
	after, next, err := tx.rowsOf(ctx, c)
	if err != nil {
		return to, false, err
	}
	for to = (followed{change: from.change, table: from.table, row: from.row}); to.table < len(followedTables); to.table, to.row = to.table+1, (ids.ID{}) {
		if pg.LessID(to.row, after) {
			to.row = after
		}
		rows, err := tx.followRows(ctx, followedTables[to.table], c.From, into, erased, to.row, next)
		if err != nil {
			return to, false, err
		}
		if len(rows) == followedRows {
			to.row = rows[followedRows-1]
			return to, true, nil
		}
	}
	if erased {
		return followed{}, false, tx.eraseRest(ctx, c, after, next)
	}
	_, err = tx.ExecAny(ctx, moveRequests, c.From, after, next, into)
	return followed{}, false, err
}

// followRows moves or erases the next rows of a table after one, up to the id where the next
// wallet of the identity begins.
func (tx transaction) followRows(ctx context.Context, table followedTable, old, into string, erased bool, after, next ids.ID) (rows []ids.ID, err error) {
	rows, err = pg.Collect(ctx, tx, table.list, pgx.RowTo[ids.ID], old, after, next, followedRows)
	if err != nil || len(rows) == 0 {
		return rows, err
	}
	if erased {
		_, err = tx.ExecAny(ctx, table.erase, rows)
	} else {
		_, err = tx.ExecAny(ctx, table.move, rows, into)
	}
	return rows, err
}
