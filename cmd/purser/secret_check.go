package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"purser/ids"
	"purser/store"
	"purser/store/people"
	"purser/tenancy/vault"
)

// secretSource names the setting or file of the key, for errors.
func secretSource(c config) string {
	if c.secretKey != "" {
		return "PURSER_SECRET_KEY"
	}
	return filepath.Join(c.data, secretFile)
}

// firstSecret creates the secret of a data folder that has none, once it is certain that the
// database was not used with another: left in the folder, the new one would look like that.
func firstSecret(ctx context.Context, c config, db *store.Store) (secret, error) {
	candidate := newSecret()
	seals, err := candidate.vault(c.previousKey)
	if err != nil {
		return "", err
	}
	recorded, decide, err := judgeSecret(ctx, c, db, seals)
	if err != nil {
		return "", err
	}
	if _, err := decide(recorded); err != nil {
		return "", err
	}
	return keepSecret(c, candidate)
}

// checkSecret refuses keys that the database was not used with. A database without a
// recorded key records this one, unless it holds secrets and none is sealed with it.
func checkSecret(ctx context.Context, c config, db *store.Store, seals *vault.Vault) error {
	_, decide, err := judgeSecret(ctx, c, db, seals)
	if err != nil {
		return err
	}
	return db.Directory().ChangeSecretKeys(ctx, time.Now().UnixMilli(), decide)
}

// judgeSecret reads the recorded check values, and returns them with the decision that
// depends on them.
func judgeSecret(ctx context.Context, c config, db *store.Store, seals *vault.Vault) (recorded [][]byte, decide func(recorded [][]byte) (people.KeyDecision, error), err error) {
	recorded, err = db.Directory().SecretKeys(ctx)
	if err != nil {
		return nil, nil, err
	}
	foreign := false
	if len(recorded) == 0 {
		readable, unreadable, err := countSealed(ctx, db, seals, true)
		if err != nil {
			return nil, nil, err
		}
		foreign = readable == 0 && unreadable > 0
	}
	return recorded, func(recorded [][]byte) (people.KeyDecision, error) {
		unknown := unknownKeys(seals, recorded)
		switch {
		case len(recorded) == 0 && foreign, len(recorded) > 0 && len(unknown) == len(recorded):
			return people.KeyDecision{}, fmt.Errorf("%s is not the key that encrypted the secrets in this database: use the previous key (from the time of the backup), or discard those secrets with 'purser migrate --adopt-secret-key'", secretSource(c))
		case len(unknown) > 0:
			return people.KeyDecision{}, errors.New("some secrets in this database are still encrypted with another key: set PURSER_SECRET_KEY_PREVIOUS to it until the log says 'stored secrets re-encrypted'")
		}
		return people.KeyDecision{Record: seals.CheckValue()}, nil
	}, nil
}

// adoptSecret records the current key as the only one, and returns how many secrets it
// cannot open.
func adoptSecret(ctx context.Context, db *store.Store, seals *vault.Vault) (lost int, err error) {
	if err := recordCurrentKey(ctx, db, seals); err != nil {
		return 0, err
	}
	_, lost, err = countSealed(ctx, db, seals, false)
	return lost, err
}

// recordCurrentKey records that no secret is sealed with another key.
func recordCurrentKey(ctx context.Context, db *store.Store, seals *vault.Vault) error {
	return db.Directory().ChangeSecretKeys(ctx, time.Now().UnixMilli(), func(recorded [][]byte) (people.KeyDecision, error) {
		current := seals.CheckValue()
		others := slices.DeleteFunc(recorded, func(check []byte) bool { return slices.Equal(check, current) })
		return people.KeyDecision{Record: current, Forget: others}, nil
	})
}

func unknownKeys(seals *vault.Vault, recorded [][]byte) (unknown [][]byte) {
	for _, check := range recorded {
		if !seals.Recognizes(check) {
			unknown = append(unknown, check)
		}
	}
	return unknown
}

// countSealed counts the stored secrets that the keys open and do not open. With enough,
// it stops at the first that opens.
func countSealed(ctx context.Context, db *store.Store, seals *vault.Vault, enough bool) (readable, unreadable int, err error) {
	err = sealedValues(ctx, db, func(sealed []byte) bool {
		if !seals.CanOpen(sealed) {
			unreadable++
			return true
		}
		readable++
		return !enough
	})
	return readable, unreadable, err
}

// sealedValues calls see with each stored secret, still encrypted, until it returns false.
func sealedValues(ctx context.Context, s *store.Store, see func(sealed []byte) (more bool)) error {
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
