package main

import (
	"context"
	"log/slog"
	"time"

	"purser/billing/cashier"
	"purser/ids"
	"purser/store"
	"purser/tenancy/vault"
)

// rotation seals what the key before has sealed with the current one, so that the
// key before can be taken away. Each row is changed by itself and only when it has
// to be: whatever stops the server, the next start goes on.
type rotation struct {
	store   *store.Store
	cashier *cashier.Cashier
	seals   *vault.Vault
	log     *slog.Logger
}

// rotationPause is between two tries when the database did not answer.
const rotationPause = time.Minute

// run goes on until everything is sealed anew, or the context ends.
func (r rotation) run(ctx context.Context) error {
	for {
		err := r.reseal(ctx)
		if err == nil || ctx.Err() != nil {
			return nil
		}
		r.log.Warn("sealing stored secrets with PURSER_SECRET_KEY was interrupted, and is tried again", "cause", err)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(rotationPause):
		}
	}
}

func (r rotation) reseal(ctx context.Context) error {
	seeds, accounts, lost := 0, 0, 0
	err := r.store.Directory().ResealSeeds(ctx, func(user ids.ID, sealed []byte) []byte {
		again, changed, err := r.seals.Rewrap(vault.SeedOf(user), sealed)
		switch {
		case err != nil:
			lost++
			r.log.Error("a stored secret cannot be opened", "purpose", "authenticator", "user", user.Format(ids.User), "cause", err)
		case changed:
			seeds++
			return again
		}
		return nil
	})
	if err != nil {
		return err
	}
	scopes, err := r.store.Directory().Scopes(ctx)
	if err != nil {
		return err
	}
	for _, scope := range scopes {
		sealed, unreadable, err := r.cashier.Reseal(ctx, scope)
		if err != nil {
			return err
		}
		accounts, lost = accounts+sealed, lost+unreadable
	}
	r.log.Info("every stored secret is sealed with PURSER_SECRET_KEY: once each node has said so, PURSER_SECRET_KEY_PREVIOUS can be taken away",
		"accounts", accounts, "authenticators", seeds, "unreadable", lost)
	return nil
}
