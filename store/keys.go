package store

import (
	"context"
	"strconv"

	"github.com/jackc/pgx/v5"

	"purser/fault"
	"purser/ids"
	"purser/keys"
	"purser/notify"
	"purser/store/internal/ledger"
	"purser/store/internal/pg"
	"purser/store/people"
	"purser/tenancy"
	"purser/tenancy/audit"
)

const keyColumns = `
	id, hash, name, preset, permissions, live, last_four, created_by, created_at,
	expires_at, revoked, revoked_at, last_used_at, replaces, replaced_by, archived_at`

var (
	insertKey = pg.Declare("insert key", pg.Insert("api_keys", "org_id,"+keyColumns))

	selectKey = pg.Declare("select key", `
		SELECT`+keyColumns+`
		FROM api_keys WHERE app_id = $1 AND id = $2`)

	lockKey = pg.Declare("lock key", `
		SELECT`+keyColumns+`
		FROM api_keys WHERE app_id = $1 AND id = $2 FOR NO KEY UPDATE`)

	listKeys = pg.Declare("list keys", `
		SELECT`+keyColumns+`
		FROM api_keys WHERE app_id = $1 AND id < $2 ORDER BY id DESC LIMIT $3`)

	retireKey = pg.Declare("retire key", `
		UPDATE api_keys SET revoked = $3, revoked_at = $4, replaced_by = $5, archived_at = NULL
		WHERE app_id = $1 AND id = $2`)

	revokeKeys = pg.Declare("revoke keys", `
		UPDATE api_keys SET revoked = true, revoked_at = LEAST(revoked_at, $2), archived_at = NULL
		WHERE app_id = $1 AND (NOT revoked OR archived_at IS NOT NULL) RETURNING id, name, revoked_at = $2 AND coalesce(expires_at > $2, true)`)

	lockExpiringKeys = pg.Declare("lock expiring keys", `
		SELECT`+keyColumns+`
		FROM api_keys WHERE app_id = $1 AND expires_at > $2 AND expires_at <= $3 AND NOT revoked AND expiry_announced_at IS NULL
		ORDER BY id LIMIT $4 FOR NO KEY UPDATE`)

	markExpiringKeys = pg.Declare("mark expiring keys", `
		UPDATE api_keys SET expiry_announced_at = $3 WHERE app_id = $1 AND id = ANY ($2)`)

	touchKey = pg.Declare("touch key", `
		UPDATE api_keys SET last_used_at = $3
		WHERE app_id = $1 AND id = $2 AND (last_used_at IS NULL OR last_used_at < $3)`)

	insertKeyAddress = pg.Declare("insert key address", `
		INSERT INTO key_directory (app_id, org_id, key_id, hash) VALUES ($1, $2, $3, $4)`)
)

func (a App) readKey(row pgx.CollectableRow) (keys.APIKey, error) {
	k := keys.APIKey{Scope: a.app.Scope}
	var hash []byte
	var permissions []string
	var createdBy, replaces, replacedBy *ids.ID
	var expires, revoked, lastUsed, archived *int64
	err := row.Scan(&k.ID, &hash, &k.Name, &k.Preset, &permissions, &k.Live, &k.Last4, &createdBy, &k.CreatedAt,
		&expires, &k.Revoked, &revoked, &lastUsed, &replaces, &replacedBy, &archived)
	k.Archived = archived != nil
	copy(k.Hash[:], hash)
	k.Permissions = tenancy.StoredPermissions(permissions)
	k.CreatedBy, k.Replaces, k.ReplacedBy = pg.OrZero(createdBy), pg.OrZero(replaces), pg.OrZero(replacedBy)
	k.ExpiresAt, k.RevokedAt, k.LastUsedAt = pg.OrZero(expires), pg.OrZero(revoked), pg.OrZero(lastUsed)
	return k, err
}

// CreateKey stores a new key, without its secret, and queues the mails that tell of it. A
// key with the same id is refused: the form was sent twice.
func (a App) CreateKey(ctx context.Context, k keys.APIKey, mails ...people.Mail) error {
	return a.transact(ctx, func(ctx context.Context, tx appTx) error {
		if err := tx.InsertBounded(ctx, ledger.BoundOfKeys, func() error { return tx.insertKey(ctx, k) }, k.CreatedAt); err != nil {
			return err
		}
		if err := pg.QueueMail(ctx, tx.Conn, mails...); err != nil {
			return err
		}
		return tx.Audit(ctx, "key.create", k.ID.Format(ids.APIKey), nil, factsOfKey(k))
	})
}

// insertKey writes the key and its address in the directory, in one transaction.
func (tx appTx) insertKey(ctx context.Context, k keys.APIKey) error {
	if k.Scope != tx.Scope {
		return fault.New(fault.APIKeyNotFound)
	}
	err := tx.Exec(ctx, insertKey, 1, pg.Named{
		"org_id": tx.Scope.OrgID, "id": k.ID, "hash": k.Hash[:], "name": k.Name, "preset": k.Preset,
		"permissions": k.Permissions.Names(), "live": k.Live, "last_four": k.Last4, "created_by": pg.OrNull(k.CreatedBy),
		"created_at": k.CreatedAt, "expires_at": pg.OrNull(k.ExpiresAt), "revoked": k.Revoked, "revoked_at": pg.OrNull(k.RevokedAt),
		"last_used_at": pg.OrNull(k.LastUsedAt), "replaces": pg.OrNull(k.Replaces), "replaced_by": pg.OrNull(k.ReplacedBy), "archived_at": nil,
	})
	if pg.SQLState(err) == pg.UniqueViolation {
		return fault.Newf(fault.AlreadyExists, "This key already exists. Its secret was shown when it was created and can't be shown again.")
	}
	if err != nil {
		return err
	}
	return tx.Exec(ctx, insertKeyAddress, 1, tx.Scope.OrgID, k.ID, k.Hash[:])
}

func (a App) Key(ctx context.Context, id ids.ID) (keys.APIKey, error) {
	return pg.FindOne(ctx, a.app, selectKey, a.readKey, fault.New(fault.APIKeyNotFound), id)
}

// Keys lists keys, newest first, and reports whether there are more.
func (a App) Keys(ctx context.Context, p Page) (list []keys.APIKey, more bool, err error) {
	return pg.PageOf(ctx, a.app, p, listKeys, a.readKey)
}

// UseKey reads the key with which a request came and refuses it when it no longer
// works. It notes the use, once a minute.
func (a App) UseKey(ctx context.Context, id ids.ID, now int64) (k keys.APIKey, err error) {
	err = a.transact(ctx, func(ctx context.Context, tx appTx) error {
		k, err = pg.Find(ctx, tx, selectKey, a.readKey, fault.New(fault.InvalidAPIKey), id)
		if err != nil {
			return err
		}
		if err := k.Usable(now); err != nil || !keys.TouchDue(k.LastUsedAt, now) {
			return err
		}
		_, err = tx.ExecAny(ctx, touchKey, id, now)
		return err
	})
	return k, err
}

// RevokeKey stops a key: no request that comes after the reply is served with it. One of
// an archived application stays revoked when that is restored.
func (a App) RevokeKey(ctx context.Context, id ids.ID, now int64) (k keys.APIKey, err error) {
	err = a.transact(ctx, func(ctx context.Context, tx appTx) error {
		was, err := pg.Find(ctx, tx, lockKey, a.readKey, fault.New(fault.APIKeyNotFound), id)
		if err != nil {
			return err
		}
		if k = was.Revoke(now); k == was {
			return nil
		}
		if err := tx.retireKey(ctx, k); err != nil {
			return err
		}
		return tx.AuditRemoval(ctx, "key.revoke", k.ID.Format(ids.APIKey), factsOfKey(was), factsOfKey(k))
	})
	return k, err
}

// RevokeKeys stops every key of the application and returns how many worked until now.
func (a App) RevokeKeys(ctx context.Context, now int64) (revoked int64, err error) {
	err = a.transact(ctx, func(ctx context.Context, tx appTx) error {
		revoked = 0
		// Until two passes find none: an update does not see the replacement of a key for whose
		// rotation it waited. Behind the head of the audit log, a key is there or created later.
		for passes := 2; passes > 0; passes-- {
			var stopped []notify.KeyData
			// The keys before the epoch, in the order in which retiring one takes them.
			err := pg.Each(ctx, tx, revokeKeys, func(row pgx.CollectableRow) error {
				var id ids.ID
				var name string
				var worked bool
				err := row.Scan(&id, &name, &worked)
				if worked {
					stopped = append(stopped, notify.KeyData{ID: id.Format(ids.APIKey), Name: name, RevokedAt: now})
				}
				return err
			}, now)
			if err != nil {
				return err
			}
			if len(stopped) == 0 {
				continue
			}
			passes = 3
			revoked += int64(len(stopped))
			if err := tx.NotifyRevoked(ctx, stopped...); err != nil {
				return err
			}
			if _, err := tx.AdvanceEpoch(ctx); err != nil {
				return err
			}
			err = tx.AuditRemoval(ctx, "key.revoke-all", tx.Scope.AppID.Format(ids.Application), nil, audit.Fields{"keys": strconv.Itoa(len(stopped))})
			if err != nil {
				return err
			}
		}
		return nil
	})
	return revoked, err
}

// maxExpiring is how many keys one transaction announces.
const maxExpiring = 500

// AnnounceExpiringKeys announces the keys that expire soon, each once, and returns how
// many. Keys expire by the database's clock.
func (a App) AnnounceExpiringKeys(ctx context.Context, now int64) (announced int, err error) {
	err = a.transact(ctx, func(ctx context.Context, tx appTx) error {
		announced = 0
		list, err := pg.Collect(ctx, tx, lockExpiringKeys, a.readKey, now, now+keys.ExpiryNotice.Milliseconds(), maxExpiring)
		if err != nil || len(list) == 0 {
			return err
		}
		at, err := tx.AppTime(ctx)
		if err != nil {
			return err
		}
		var seen []ids.ID
		var notifications []notify.Notification
		for _, k := range list {
			seen = append(seen, k.ID)
			if k.ExpiresSoon(now) {
				notifications = append(notifications, notify.New(notify.KeyExpiring, ids.ID{}, notify.KeyData{ID: k.ID.Format(ids.APIKey), Name: k.Name, ExpiresAt: k.ExpiresAt}, at))
			}
		}
		announced = len(notifications)
		if err := tx.Notify(ctx, notifications...); err != nil {
			return err
		}
		return tx.Exec(ctx, markExpiringKeys, int64(len(seen)), seen, now)
	})
	return announced, err
}

// RotateKey replaces a key in one step. The rule, given the key as it stands
// under its lock, makes the replacement.
func (a App) RotateKey(ctx context.Context, id ids.ID, rotate func(keys.APIKey) (keys.Rotated, error), mails ...people.Mail) (r keys.Rotated, err error) {
	err = a.transact(ctx, func(ctx context.Context, tx appTx) error {
		old, err := pg.Find(ctx, tx, lockKey, a.readKey, fault.New(fault.APIKeyNotFound), id)
		if err != nil {
			return err
		}
		if r, err = rotate(old); err != nil {
			return err
		}
		if err := tx.insertKey(ctx, r.New); err != nil {
			return err
		}
		if err := tx.retireKey(ctx, r.Old); err != nil {
			return err
		}
		if !r.Old.Revoked {
			if err := tx.CheckBound(ctx, ledger.BoundOfReplacedKeys, r.New.CreatedAt); err != nil {
				return err
			}
		}
		if err := pg.QueueMail(ctx, tx.Conn, mails...); err != nil {
			return err
		}
		rotated := factsOfKey(r.Old)
		rotated["replacedBy"] = r.New.ID.Format(ids.APIKey)
		rotated["replacement"] = r.New.Masked()
		return tx.Audit(ctx, "key.rotate", old.ID.Format(ids.APIKey), factsOfKey(old), rotated)
	})
	return r, err
}

// retireKey writes when a key ends, tells every node, and announces one that ends now.
func (tx appTx) retireKey(ctx context.Context, k keys.APIKey) error {
	if _, err := tx.AdvanceEpoch(ctx); err != nil {
		return err
	}
	if err := tx.Exec(ctx, retireKey, 1, k.ID, k.Revoked, pg.OrNull(k.RevokedAt), pg.OrNull(k.ReplacedBy)); err != nil || !k.Revoked {
		return err
	}
	return tx.NotifyRevoked(ctx, notify.KeyData{ID: k.ID.Format(ids.APIKey), Name: k.Name, RevokedAt: k.RevokedAt})
}
