package billing

import (
	"crypto/sha256"
	"encoding/binary"
	"strconv"

	"purser/metering"
)

// Fingerprint tells apart two requests with the same idempotency key. It is stored, so
// its input and format may never change.
type Fingerprint [sha256.Size]byte

// ChangeRequest requests another plan.
type ChangeRequest struct {
	Identity string
	PlanKey  string
	// Confirmed is the version of the preview that was confirmed: another effect is
	// refused. Nil for a request without a preview.
	Confirmed *string
}

func (r ChangeRequest) Fingerprint() Fingerprint {
	return fingerprint(OperationChange, r.Identity, r.PlanKey)
}

// CancelRequest sets or clears cancellation at period end.
type CancelRequest struct {
	Identity          string
	CancelAtPeriodEnd bool
}

func (r CancelRequest) Fingerprint() Fingerprint {
	return fingerprint(OperationCancel, r.Identity, strconv.FormatBool(r.CancelAtPeriodEnd))
}

// CheckoutRequest requests a checkout session for a plan.
type CheckoutRequest struct {
	Identity   string
	PlanKey    string
	SuccessURL string
	CancelURL  string
}

func (r CheckoutRequest) Fingerprint() Fingerprint {
	return fingerprint(OperationCheckout, r.Identity, r.PlanKey, r.SuccessURL, r.CancelURL)
}

// TopUpRequest requests a checkout session for credits.
type TopUpRequest struct {
	Identity    string
	CreditKey   string
	Amount      metering.Amount
	AmountCents int64
	Currency    string
	SuccessURL  string
	CancelURL   string
}

func (r TopUpRequest) Fingerprint() Fingerprint {
	return fingerprint(OperationTopUp, r.Identity, r.CreditKey, r.Amount.String(),
		strconv.FormatInt(r.AmountCents, 10), r.Currency, r.SuccessURL, r.CancelURL)
}

// fingerprint hashes each part with a length prefix, so that different lists never
// produce the same bytes.
func fingerprint(kind OperationKind, parts ...string) Fingerprint {
	var text []byte
	for _, part := range append([]string{string(kind)}, parts...) {
		text = binary.BigEndian.AppendUint64(text, uint64(len(part)))
		text = append(text, part...)
	}
	return sha256.Sum256(text)
}
