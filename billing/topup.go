package billing

import "purser/ids"

// TopUp is a purchase of credits in a checkout session. Its terms are fixed when the
// session is created.
type TopUp struct {
	ID          ids.ID
	Identity    string
	Credit      Grant
	AmountCents int64
	Currency    string

	ConnectionID ids.ID // the account where it is sold
	CustomerID   string // the provider's customer id
	Live         bool   // whether it is about real money
	SessionID    string // empty until the session is created
	URL          string
	ExpiresAt    int64
	Status       TopUpStatus
	CreatedAt    int64
}

type TopUpStatus string

// The statuses of a top-up.
const (
	TopUpOpen       TopUpStatus = "open"
	TopUpProcessing TopUpStatus = "processing" // the session is complete, the payment is processing
	TopUpPaid       TopUpStatus = "paid"       // and credited
	TopUpFailed     TopUpStatus = "failed"
	TopUpExpired    TopUpStatus = "expired"
	TopUpSetAside   TopUpStatus = "set_aside" // paid, but not what was requested: a person decides
)

// ApplySession applies the session's state to the top-up, and returns the payment to
// credit when it was paid. The session decides alone: one that was paid in the second
// of its expiry is credited. Paid is final; when a second session of the same top-up
// was paid as well, which a retry of the creating call can leave behind, an alert asks
// a person to refund it.
func (t TopUp) ApplySession(remote ProviderSession) (next TopUp, settled []Payment, alerts []Alert) {
	if t.Status == TopUpPaid {
		if remote.Paid && remote.ID != t.SessionID {
			alerts = []Alert{{AmountMismatch, remote.ID}}
		}
		return t, nil, alerts
	}
	was := t.Status
	if t.Status = t.statusOf(remote); t.Status != TopUpSetAside {
		t.SessionID, t.URL, t.ExpiresAt = remote.ID, remote.URL, remote.ExpiresAt
	}
	switch {
	case t.Status == TopUpPaid:
		return t, []Payment{t.payment(remote)}, nil
	case t.Status == TopUpSetAside && was != TopUpSetAside:
		return t, nil, []Alert{{AmountMismatch, remote.ID}}
	default:
		return t, nil, nil
	}
}

func (t TopUp) statusOf(remote ProviderSession) TopUpStatus {
	switch {
	case remote.Paid && t.matches(remote):
		return TopUpPaid
	case remote.Paid:
		return TopUpSetAside
	case remote.Failed:
		return TopUpFailed
	case remote.Status == SessionComplete:
		return TopUpProcessing
	case remote.Status == SessionExpired:
		return TopUpExpired
	default:
		return TopUpOpen
	}
}

// matches reports whether the session sold what was requested.
func (t TopUp) matches(remote ProviderSession) bool {
	return remote.AmountTotal == t.AmountCents && remote.Currency == t.Currency && remote.Live == t.Live &&
		remote.CustomerID == t.CustomerID && (t.SessionID == "" || t.SessionID == remote.ID)
}

func (t TopUp) payment(remote ProviderSession) Payment {
	return Payment{
		Source:      Source{Session, remote.ID},
		Credits:     []Grant{t.Credit},
		AmountCents: remote.AmountTotal,
		Currency:    remote.Currency,
		IntentID:    remote.IntentID,
		ChargeID:    remote.ChargeID,
	}
}
