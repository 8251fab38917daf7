package billing

import (
	"crypto/sha256"
	"encoding/binary"
	"strconv"

	"purser/metering"
)

// Fingerprint tells two requests apart that carry the same idempotency key. It is
// stored, so what goes into it and how may never change.
type Fingerprint [sha256.Size]byte

// ChangeRequest asks for another plan.
type ChangeRequest struct {
	Identity string
	PlanKey  string
}

// Fingerprint is that of the request.
func (r ChangeRequest) Fingerprint() Fingerprint {
	return fingerprint(OperationChange, r.Identity, r.PlanKey)
}

// CancelRequest asks to end with the period, or not to.
type CancelRequest struct {
	Identity          string
	CancelAtPeriodEnd bool
}

// Fingerprint is that of the request.
func (r CancelRequest) Fingerprint() Fingerprint {
	return fingerprint(OperationCancel, r.Identity, strconv.FormatBool(r.CancelAtPeriodEnd))
}

// CheckoutRequest asks for a page on which to buy a plan.
type CheckoutRequest struct {
	Identity   string
	PlanKey    string
	SuccessURL string
	CancelURL  string
}

// Fingerprint is that of the request.
func (r CheckoutRequest) Fingerprint() Fingerprint {
	return fingerprint(OperationCheckout, r.Identity, r.PlanKey, r.SuccessURL, r.CancelURL)
}

// TopUpRequest asks for a page on which to buy credits.
type TopUpRequest struct {
	Identity    string
	CreditKey   string
	Amount      metering.Amount
	AmountCents int64
	Currency    string
	SuccessURL  string
	CancelURL   string
}

// Fingerprint is that of the request.
func (r TopUpRequest) Fingerprint() Fingerprint {
	return fingerprint(OperationTopUp, r.Identity, r.CreditKey, r.Amount.String(),
		strconv.FormatInt(r.AmountCents, 10), r.Currency, r.SuccessURL, r.CancelURL)
}

// fingerprint hashes each part with its length before it, so that no two lists of
// parts run into the same bytes.
func fingerprint(kind OperationKind, parts ...string) Fingerprint {
	var text []byte
	for _, part := range append([]string{string(kind)}, parts...) {
		text = binary.BigEndian.AppendUint64(text, uint64(len(part)))
		text = append(text, part...)
	}
	return sha256.Sum256(text)
}
