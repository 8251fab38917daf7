package store

import (
	"context"

	"purser/ids"
	"purser/metering"
	"purser/store/internal/identities"
)

// MaxErasureReason is the maximum length of an erasure's reason, in characters.
const MaxErasureReason = identities.MaxErasureReason

type (
	// Rename gives a wallet another identity.
	Rename = identities.Rename
	// Erasure replaces the identity of a wallet by one that says nothing about a customer.
	Erasure = identities.Erasure
)

// Rename gives a wallet another identity, once for an idempotency key.
func (a App) Rename(ctx context.Context, requested Rename) (w metering.Wallet, duplicate bool, err error) {
	return identities.Open(a.app).Rename(ctx, requested)
}

// Erase replaces the identity of a wallet, once for an idempotency key.
func (a App) Erase(ctx context.Context, requested Erasure) (e Erasure, duplicate bool, err error) {
	return identities.Open(a.app).Erase(ctx, requested)
}

// FinishIdentityChange moves or erases what nodes wrote by the old identities of a wallet, and
// returns when to do so again, both by the real clock; zero when nothing more can come.
func (a App) FinishIdentityChange(ctx context.Context, wallet ids.ID, now int64) (next int64, err error) {
	return identities.Open(a.app).FinishChange(ctx, wallet, now)
}
