package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"purser/ids"
	"purser/tenancy"
)

// SealedValues hands stored secrets to see, sealed as they are, until it returns
// false.
func (s *Store) SealedValues(ctx context.Context, see func(sealed []byte) (more bool)) error {
	more := true
	visit := func(sealed []byte) {
		if more && len(sealed) > 0 {
			more = see(sealed)
		}
	}
	err := s.Directory().ResealSeeds(ctx, func(_ ids.ID, sealed []byte) []byte {
		visit(sealed)
		return nil
	})
	if err != nil || !more {
		return err
	}
	rows, err := s.db.Pool.Query(ctx, `SELECT DISTINCT org_id, app_id FROM connection_directory`)
	if err != nil {
		return fmt.Errorf("store: list connections: %w", err)
	}
	scopes, err := pgx.CollectRows(rows, pgx.RowToStructByPos[tenancy.Scope])
	if err != nil {
		return fmt.Errorf("store: list connections: %w", err)
	}
	for _, scope := range scopes {
		if err := s.PaymentAccounts(scope).SealedSecrets(ctx, visit); err != nil || !more {
			return err
		}
	}
	return nil
}
