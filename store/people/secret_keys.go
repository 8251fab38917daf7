package people

import (
	"context"

	"github.com/jackc/pgx/v5"

	"purser/store/internal/pg"
)

// secretKeysLock makes nodes that start at once check their keys one after the other.
const secretKeysLock = 7_081_727_312_019

// KeyDecision is what follows from the keys that are recorded.
type KeyDecision struct {
	Record []byte   // the check value to add, if any
	Forget [][]byte // those to remove
}

const listSecretKeys = `SELECT check_value FROM secret_keys ORDER BY created_at`

// SecretKeys are the check values of the keys under which stored secrets may be
// sealed.
func (d Directory) SecretKeys(ctx context.Context) ([][]byte, error) {
	return pg.CollectSQL(ctx, d.handles.pool, "list secret keys", pgx.RowTo[[]byte], listSecretKeys)
}

// ChangeSecretKeys calls decide with the recorded check values, and stores the decision,
// in one transaction that no other node runs at the same time.
func (d Directory) ChangeSecretKeys(ctx context.Context, now int64, decide func(recorded [][]byte) (KeyDecision, error)) error {
	return pg.Retry(ctx, func() error { return d.changeSecretKeys(ctx, now, decide) })
}

func (d Directory) changeSecretKeys(ctx context.Context, now int64, decide func(recorded [][]byte) (KeyDecision, error)) error {
	return pgx.BeginFunc(ctx, d.handles.pool, func(tx pgx.Tx) error {
		if _, err := pg.ExecSQL(ctx, tx, "lock secret keys", `SELECT pg_advisory_xact_lock($1)`, int64(secretKeysLock)); err != nil {
			return err
		}
		recorded, err := pg.CollectSQL(ctx, tx, "list secret keys", pgx.RowTo[[]byte], listSecretKeys)
		if err != nil {
			return err
		}
		decision, err := decide(recorded)
		if err != nil {
			return err
		}
		if len(decision.Forget) > 0 {
			if _, err := pg.ExecSQL(ctx, tx, "forget secret keys", `DELETE FROM secret_keys WHERE check_value = ANY ($1)`, decision.Forget); err != nil {
				return err
			}
		}
		if decision.Record != nil {
			_, err = pg.ExecSQL(ctx, tx, "record a secret key", `INSERT INTO secret_keys (check_value, created_at) VALUES ($1, $2) ON CONFLICT DO NOTHING`, decision.Record, now)
		}
		return err
	})
}
