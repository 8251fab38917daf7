package identities

import (
	"context"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"purser/fault"
	"purser/ids"
	"purser/metering"
	"purser/store/internal/pg"
	"purser/store/payments"
	"purser/tenancy/audit"
)

// MaxErasureReason is the maximum length of an erasure's reason, in characters.
const MaxErasureReason = 200

// Erasure replaces the identity of a wallet by one that says nothing about a customer.
// The journal and its sums stay.
type Erasure struct {
	ID             ids.ID
	Identity       string // not stored
	WalletID       ids.ID // that must be the one of Identity; zero for any. Set by Erase
	Reason         string
	IdempotencyKey string
	By             ids.ID // a user; zero for an API key
	CreatedAt      int64
}

const (
	// erasedProperties is how many properties of events are deleted in one transaction, and
	// erasedAnswers how many answers of receivers, of as many notifications as notifiedPart.
	erasedProperties = 5_000
	erasedAnswers    = 5_000
	notifiedPart     = 100
)

var (
	deleteAlertRulesOf = pg.Declare("delete alert rules of an identity", `
		DELETE FROM alert_rules WHERE app_id = $1 AND identity = $2`)

	forgetIdentities = pg.Declare("forget identities", `
		UPDATE identity_changes SET from_identity = NULL, to_identity = NULL WHERE app_id = $1 AND wallet_id = $2 AND settled`)

	eraseRequests = pg.Declare("erase requests", `
		UPDATE recent_requests SET identity = NULL, message = NULL WHERE app_id = $1 AND identity = $2 AND id > $3 AND id < $4`)

	eraseProperties = pg.Declare("erase properties", `
		DELETE FROM event_properties WHERE app_id = $1 AND wallet_id = $2 AND seq IN (
			SELECT x.seq FROM event_properties x WHERE x.app_id = $1 AND x.wallet_id = $2 ORDER BY x.seq LIMIT $3)`)

	listNotified = pg.Declare("list notifications about a wallet", `
		SELECT id, seq FROM notifications WHERE app_id = $1 AND wallet_id = $2 AND seq > $3 ORDER BY seq LIMIT $4`)

	// A receiver may answer with what it was sent.
	eraseAnswers = pg.Declare("erase answers of receivers", `
		UPDATE delivery_attempts SET answer = '' WHERE app_id = $1 AND id IN (
			SELECT t.id FROM delivery_attempts t WHERE t.app_id = $1 AND t.notification_id = ANY ($2) AND t.answer <> '' LIMIT $3)`)

	lockVerificationLines = pg.Declare("lock verification lines", `
		SELECT kind, lines FROM verifications WHERE app_id = $1 ORDER BY kind FOR NO KEY UPDATE`)

	setVerificationLines = pg.Declare("set verification lines", `
		UPDATE verifications SET lines = $3 WHERE app_id = $1 AND kind = $2`)
)

// Erase replaces the identity of a wallet, once for an idempotency key. It is refused
// while the wallet has a paid subscription, an open checkout or a running operation; a
// free subscription ends with it. What nodes still write by the old identity, the
// properties of events and the seal follow in a job.
func (a App) Erase(ctx context.Context, requested Erasure) (e Erasure, duplicate bool, err error) {
	switch {
	case requested.Reason == "":
		return e, false, fault.Newf(fault.InvalidRequest, "Enter a reason for the erasure.")
	case metering.NamesIdentity(requested.Reason, requested.Identity):
		return e, false, fault.Newf(fault.InvalidRequest, "The reason is kept, so it must not contain the identity.")
	}
	err = pg.RetryKeyed(ctx, a.transact, func(ctx context.Context, tx transaction) error {
		e, duplicate, err = tx.erase(ctx, requested)
		return err
	})
	a.app.WalletChanged(requested.Identity)
	return e, duplicate, err
}

func (tx transaction) erase(ctx context.Context, requested Erasure) (e Erasure, duplicate bool, err error) {
	_, locked, earlier, err := tx.beginChange(ctx, changeErasure, requested.IdempotencyKey, requested.Identity)
	if err != nil {
		return e, false, err
	}
	if len(earlier) == 1 {
		if len(locked) == 0 {
			if err := tx.DeleteLease(ctx, requested.Identity); err != nil {
				return e, false, err
			}
		}
		return repeatedErasure(earlier[0], requested, len(locked) > 0)
	}
	if len(locked) == 0 || !requested.WalletID.IsZero() && requested.WalletID != locked[0].ID {
		return e, false, fault.New(fault.WalletNotFound)
	}
	w := &locked[0]
	if err := payments.CheckErasable(ctx, tx.Tx, w.ID); err != nil {
		return e, false, err
	}
	if err := payments.EndFree(ctx, tx.Tx, w, requested.CreatedAt); err != nil {
		return e, false, err
	}
	tombstone := metering.Tombstone(requested.ID)
	if err := payments.Redact(ctx, tx.Tx, w.ID, tombstone); err != nil {
		return e, false, err
	}
	if _, err := tx.ExecAny(ctx, deleteAlertRulesOf, w.Identity); err != nil {
		return e, false, err
	}
	if _, err := tx.ExecAny(ctx, forgetIdentities, w.ID); err != nil {
		return e, false, err
	}
	if err := tx.DeleteLease(ctx, w.Identity); err != nil {
		return e, false, err
	}
	err = tx.changeIdentity(ctx, w, identityChange{
		ID: requested.ID, WalletID: w.ID, Kind: changeErasure, From: requested.Identity, Reason: requested.Reason,
		IdempotencyKey: requested.IdempotencyKey, By: requested.By, CreatedAt: requested.CreatedAt,
	}, tombstone)
	if err != nil {
		return e, false, err
	}
	requested.WalletID = w.ID
	return requested, false, tx.Audit(ctx, "wallet.erase", w.ID.Format(ids.Wallet), nil, audit.Fields{"reason": requested.Reason})
}

// repeatedErasure answers a repeated key. Once the identity of the first request is
// forgotten, a request for an identity that has a wallet is another one: its response
// must not say that the wallet was erased.
func repeatedErasure(c identityChange, requested Erasure, hasWallet bool) (e Erasure, duplicate bool, err error) {
	same := c.From == requested.Identity || c.From == "" && !hasWallet
	if c.ID != requested.ID && (!same || c.Reason != requested.Reason) {
		return e, false, fault.New(fault.IdempotencyConflict)
	}
	requested.ID, requested.WalletID, requested.By, requested.CreatedAt, duplicate = c.ID, c.WalletID, c.By, c.CreatedAt, c.ID != requested.ID
	return requested, duplicate, nil
}

// eraseProperties deletes the properties of a wallet's events, some at a time.
func (a App) eraseProperties(ctx context.Context, wallet ids.ID) error {
	for {
		var deleted int64
		err := a.transact(ctx, func(ctx context.Context, tx transaction) (err error) {
			deleted, err = tx.ExecAny(ctx, eraseProperties, wallet, erasedProperties)
			return err
		})
		if err != nil || deleted < erasedProperties {
			return err
		}
	}
}

// eraseAnswers deletes what receivers answered to notifications about a wallet, some at a
// time.
func (a App) eraseAnswers(ctx context.Context, wallet ids.ID) error {
	type notified struct {
		ID  ids.ID
		Seq int64
	}
	for after := int64(0); ; {
		var part []notified
		var erased int64
		err := a.transact(ctx, func(ctx context.Context, tx transaction) (err error) {
			if part, err = pg.Collect(ctx, tx, listNotified, pgx.RowToStructByPos[notified], wallet, after, notifiedPart); err != nil {
				return err
			}
			list := make([]ids.ID, len(part))
			for i, n := range part {
				list[i] = n.ID
			}
			erased, err = tx.ExecAny(ctx, eraseAnswers, list, erasedAnswers)
			return err
		})
		switch {
		case err != nil:
			return err
		case erased == erasedAnswers: // the same notifications may have more
		case len(part) < notifiedPart:
			return nil
		default:
			after = part[len(part)-1].Seq
		}
	}
}

// eraseRest deletes what else names an erased identity beside the books, between the ids where
// its wallet and the next one begin.
func (tx transaction) eraseRest(ctx context.Context, c identityChange, after, next ids.ID) error {
	if _, err := tx.ExecAny(ctx, eraseRequests, c.From, after, next); err != nil {
		return err
	}
	type run struct {
		Kind  string
		Lines []string
	}
	runs, err := pg.Collect(ctx, tx, lockVerificationLines, pgx.RowToStructByPos[run])
	if err != nil {
		return err
	}
	for _, r := range runs {
		if !redactLines(r.Lines, c.WalletID, c.From) {
			continue
		}
		if err := tx.Exec(ctx, setVerificationLines, 1, r.Kind, r.Lines); err != nil {
			return err
		}
	}
	return nil
}

// redactLines cuts what names the customer out of the lines about a wallet, and reports
// whether there were any.
func redactLines(lines []string, wallet ids.ID, identity string) (redacted bool) {
	name := wallet.Format(ids.Wallet)
	for i, line := range lines {
		about := strings.HasPrefix(line, name)
		if !about && !strings.Contains(line, strconv.Quote(identity)) { // a short one may be part of an id or amount
			continue
		}
		lines[i], redacted = "details were erased with the customer", true
		if about {
			lines[i] = name + ": " + lines[i]
		}
	}
	return redacted
}
