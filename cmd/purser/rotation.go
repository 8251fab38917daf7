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

const (
	rotationPause = time.Minute // between two tries when the database did not answer
	// A form that was opened before, or a server that still has only the key before, may
	// seal something with that key after everything was sealed anew.
	rotationEvery = time.Hour
)

// keep has everything sealed anew for as long as the key before is given.
func (r rotation) keep(ctx context.Context) error {
	for {
		if err := r.run(ctx); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(rotationEvery):
		}
	}
}

// run goes on until a pass finds nothing more to do, or the context ends.
func (r rotation) run(ctx context.Context) error {
	var done resealed
	for {
		pass, err := r.reseal(ctx)
		if err == nil && pass.seeds+pass.accounts == 0 {
			err = keepOnlyCurrent(ctx, r.store, r.seals)
		}
		done.seeds, done.accounts = done.seeds+pass.seeds, done.accounts+pass.accounts
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil && pass.seeds+pass.accounts == 0:
			r.log.Info("every stored secret is sealed with PURSER_SECRET_KEY: once each node has said so, PURSER_SECRET_KEY_PREVIOUS can be taken away",
				"accounts", done.accounts, "authenticators", done.seeds, "unreadable", pass.lost)
			return nil
		case err == nil:
			continue
		}
		r.log.Warn("sealing stored secrets with PURSER_SECRET_KEY was interrupted, and is tried again", "cause", err)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(rotationPause):
		}
	}
}

// resealed is what a pass has sealed, and what no key opens.
type resealed struct{ seeds, accounts, lost int }

func (r rotation) reseal(ctx context.Context) (pass resealed, err error) {
	err = r.store.Directory().ResealSeeds(ctx, func(user ids.ID, sealed []byte) []byte {
		again, changed, err := r.seals.Rewrap(vault.SeedOf(user), sealed)
		switch {
		case err != nil:
			pass.lost++
			r.log.Error("a stored secret cannot be opened", "purpose", "authenticator", "user", user.Format(ids.User), "cause", err)
		case changed:
			pass.seeds++
			return again
		}
		return nil
	})
	if err != nil {
		return pass, err
	}
	scopes, err := r.store.Directory().Scopes(ctx)
	if err != nil {
		return pass, err
	}
	for _, scope := range scopes {
		sealed, unreadable, err := r.cashier.Reseal(ctx, scope)
		if err != nil {
			return pass, err
		}
		pass.accounts, pass.lost = pass.accounts+sealed, pass.lost+unreadable
	}
	return pass, nil
}
