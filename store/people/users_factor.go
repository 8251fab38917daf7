package people

import (
	"context"

	"github.com/jackc/pgx/v5"

	"purser/fault"
	"purser/store/internal/pg"
	"purser/tenancy/audit"
	"purser/tenancy/credential"
)

// Factor is a user's authenticator.
type Factor struct {
	SealedSeed []byte
	LastStep   int64
	CodesLeft  int // recovery codes
}

// Factor reads the user's authenticator.
func (p User) Factor(ctx context.Context) (Factor, error) {
	return pg.FindSQL(ctx, p.handles.pool, "select factor", pgx.RowToStructByPos[Factor], `
		SELECT sealed_seed, last_step, (SELECT count(*) FROM recovery_codes c WHERE c.user_id = f.user_id)
		FROM second_factors f WHERE user_id = $1`, p.id)
}

// AddFactor stores an authenticator whose first code was verified, with its recovery
// codes, and ends the sessions that were opened without it. A session that was ended
// since is a RevisionConflict, as it is for ReplaceRecoveryCodes and RemoveFactor.
func (p User) AddFactor(ctx context.Context, f Factor, codes []credential.Hash, token string, by audit.Actor, mails ...Mail) error {
	return p.handles.inUserTx(ctx, func(ctx context.Context, tx pgx.Tx) error {
		if err := p.lockInSession(ctx, tx, token); err != nil {
			return err
		}
		added, err := pg.ExecSQL(ctx, tx, "insert factor", `
			INSERT INTO second_factors (user_id, sealed_seed, created_at, last_step) VALUES ($1, $2, $3, $4)
			ON CONFLICT (user_id) DO NOTHING`, p.id, f.SealedSeed, by.At, f.LastStep)
		if err != nil {
			return err
		}
		if added == 0 {
			return fault.Newf(fault.AlreadyExists, "Two-factor is already on.")
		}
		if err := p.putRecoveryCodes(ctx, tx, codes); err != nil {
			return err
		}
		return p.finishChange(ctx, tx, token, mails, by, "account.factor-on", audit.Fields{"authenticator": "on"})
	})
}

func (p User) ReplaceRecoveryCodes(ctx context.Context, codes []credential.Hash, token string, by audit.Actor, mails ...Mail) error {
	return p.handles.inUserTx(ctx, func(ctx context.Context, tx pgx.Tx) error {
		if err := p.lockInSession(ctx, tx, token); err != nil {
			return err
		}
		if err := p.putRecoveryCodes(ctx, tx, codes); err != nil {
			return err
		}
		if err := pg.QueueMail(ctx, tx.Conn(), mails...); err != nil {
			return err
		}
		return p.auditOwn(ctx, tx, by, "account.recovery-codes", audit.Fields{"recovery codes": "replaced"})
	})
}

func (p User) putRecoveryCodes(ctx context.Context, tx pgx.Tx, codes []credential.Hash) error {
	hashes := make([][]byte, len(codes))
	for i := range codes {
		hashes[i] = codes[i][:]
	}
	if _, err := pg.ExecSQL(ctx, tx, "delete recovery codes", `DELETE FROM recovery_codes WHERE user_id = $1`, p.id); err != nil {
		return err
	}
	_, err := pg.ExecSQL(ctx, tx, "insert recovery codes", `INSERT INTO recovery_codes (user_id, hash) SELECT $1, unnest($2::bytea[])`, p.id, hashes)
	return err
}

// UseStep spends the code of a time step. It returns false when that step or a later
// one was spent already.
func (p User) UseStep(ctx context.Context, step int64) (spent bool, err error) {
	used, err := pg.ExecSQL(ctx, p.handles.pool, "use step", `UPDATE second_factors SET last_step = $2 WHERE user_id = $1 AND last_step < $2`, p.id, step)
	return used == 1, err
}

// UseRecoveryCode spends a recovery code. It returns false for an unknown one.
func (p User) UseRecoveryCode(ctx context.Context, hash credential.Hash) (spent bool, err error) {
	used, err := pg.ExecSQL(ctx, p.handles.pool, "use recovery code", `DELETE FROM recovery_codes WHERE user_id = $1 AND hash = $2`, p.id, hash[:])
	return used == 1, err
}

// RemoveFactor deletes the authenticator and its recovery codes, and ends the sessions
// in all other browsers.
func (p User) RemoveFactor(ctx context.Context, token string, by audit.Actor, mails ...Mail) error {
	return p.handles.inUserTx(ctx, func(ctx context.Context, tx pgx.Tx) error {
		if err := p.lockInSession(ctx, tx, token); err != nil {
			return err
		}
		if err := p.removeFactor(ctx, tx); err != nil {
			return err
		}
		return p.finishChange(ctx, tx, token, mails, by, "account.factor-off", audit.Fields{"authenticator": "off"})
	})
}

// lockInSession locks the user's credentials for a change that the session asks for.
func (p User) lockInSession(ctx context.Context, tx pgx.Tx, token string) error {
	if err := lockCredentials(ctx, tx, p.id); err != nil {
		return err
	}
	return holdSession(ctx, tx, p.id, token)
}

func (p User) removeFactor(ctx context.Context, tx pgx.Tx) error {
	if err := p.putRecoveryCodes(ctx, tx, nil); err != nil {
		return err
	}
	_, err := pg.ExecSQL(ctx, tx, "delete factor", `DELETE FROM second_factors WHERE user_id = $1`, p.id)
	return err
}
