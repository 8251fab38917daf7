package main

import (
	"context"
	"log/slog"
	"time"

	"purser/ids"
	"purser/mail"
	"purser/notify/delivery"
	"purser/payments/cashier"
	"purser/store"
	"purser/tenancy/vault"
)

// rotation reseals secrets sealed with the previous key, so that the previous key can be
// removed. Each row is updated on its own and only if needed, so an interrupted rotation
// continues at the next start.
type rotation struct {
	store      *store.Store
	cashier    *cashier.Cashier
	deliveries *delivery.Dispatcher
	seals      *vault.Vault
	log        *slog.Logger
}

const (
	rotationPause = time.Minute // between retries after a database error
	// A form opened earlier, or a node that has only the previous key, may seal with the
	// previous key after a rotation, so it is repeated.
	rotationEvery = time.Hour
)

// runPeriodically rotates until the context ends.
func (r rotation) runPeriodically(ctx context.Context) error {
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

// run repeats passes until one finds nothing to reseal, or the context ends.
func (r rotation) run(ctx context.Context) error {
	var done resealCounts
	for {
		pass, err := r.reseal(ctx)
		if err == nil && pass.resealed() == 0 {
			err = recordCurrentKey(ctx, r.store, r.seals)
		}
		done.add(pass)
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil && pass.resealed() == 0:
			r.log.Info("stored secrets re-encrypted: remove PURSER_SECRET_KEY_PREVIOUS when every node has logged this",
				"accounts", done.accounts, "authenticators", done.seeds, "unreadable", pass.lost, "endpoints", done.endpoints, "mails", done.mails)
			return nil
		case err == nil:
			continue
		}
		r.log.Warn("sealing stored secrets with PURSER_SECRET_KEY interrupted, will retry", "cause", err)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(rotationPause):
		}
	}
}

// resealCounts counts what a pass resealed and what no key opens.
type resealCounts struct{ seeds, accounts, endpoints, mails, lost int }

func (c *resealCounts) add(pass resealCounts) {
	c.seeds, c.accounts, c.endpoints, c.mails = c.seeds+pass.seeds, c.accounts+pass.accounts, c.endpoints+pass.endpoints, c.mails+pass.mails
}

func (c resealCounts) resealed() int { return c.seeds + c.accounts + c.endpoints + c.mails }

func (r rotation) reseal(ctx context.Context) (pass resealCounts, err error) {
	err = r.store.Directory().ResealSeeds(ctx, func(user ids.ID, sealed []byte) []byte {
		return r.rewrap(vault.SeedOf(user), sealed, &pass.seeds, &pass.lost, "purpose", "authenticator", "user", user.Format(ids.User))
	})
	if err != nil {
		return pass, err
	}
	err = r.store.Outbox().Reseal(ctx, func(id ids.ID, sealed []byte) []byte {
		return r.rewrap(mail.Place(id), sealed, &pass.mails, &pass.lost, "purpose", "mail", "mail", id.String())
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
		if sealed, unreadable, err = r.deliveries.Reseal(ctx, scope); err != nil {
			return pass, err
		}
		pass.endpoints, pass.lost = pass.endpoints+sealed, pass.lost+unreadable
	}
	return pass, nil
}

// rewrap returns a secret under the current key, or nil when it has to stay as it is.
func (r rotation) rewrap(place vault.Place, sealed []byte, done, lost *int, what ...any) []byte {
	again, changed, err := r.seals.Rewrap(place, sealed)
	switch {
	case err != nil:
		*lost++
		r.log.Error("a stored secret cannot be opened", append(what, "cause", err)...)
	case changed:
		*done++
		return again
	}
	return nil
}
