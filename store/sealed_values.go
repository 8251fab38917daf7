package store

import (
	"context"

	"purser/ids"
)

// SealedValues calls see with each stored secret, still encrypted, until it returns false.
func (s *Store) SealedValues(ctx context.Context, see func(sealed []byte) (more bool)) error {
	more := true
	visit := func(sealed []byte) {
		if more && len(sealed) > 0 {
			more = see(sealed)
		}
	}
	keep := func(_ ids.ID, sealed []byte) []byte {
		visit(sealed)
		return nil
	}
	if err := s.Directory().ResealSeeds(ctx, keep); err != nil || !more {
		return err
	}
	if err := s.Outbox().Reseal(ctx, keep); err != nil || !more {
		return err
	}
	scopes, err := s.Directory().Scopes(ctx)
	for _, scope := range scopes {
		if err := s.PaymentAccounts(scope).SealedSecrets(ctx, visit); err != nil || !more {
			return err
		}
		endpoints, err := s.Notifications(scope).Endpoints(ctx)
		if err != nil {
			return err
		}
		for _, e := range endpoints {
			visit(e.SealedSecret)
			visit(e.SealedPrevious)
		}
	}
	return err
}
