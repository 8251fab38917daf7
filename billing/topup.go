package billing

import "purser/ids"

// TopUp is a purchase of credits on a hosted page. What was asked for is frozen
// when the page is made.
type TopUp struct {
	ID          ids.ID
	Identity    string
	Credit      Grant
	AmountCents int64
	Currency    string

	ConnectionID ids.ID // the account where it is sold
	CustomerID   string // the provider's name for the identity
	Live         bool   // whether it is about real money
	SessionID    string // empty until the provider has made the page
	URL          string
	ExpiresAt    int64
	Status       TopUpStatus
	CreatedAt    int64
}

// TopUpStatus is how far a top-up has come.
type TopUpStatus string

// The statuses of a top-up.
const (
	TopUpOpen       TopUpStatus = "open"
	TopUpProcessing TopUpStatus = "processing" // the page is done, the money is on its way
	TopUpPaid       TopUpStatus = "paid"       // and credited
	TopUpFailed     TopUpStatus = "failed"
	TopUpExpired    TopUpStatus = "expired"
	TopUpSetAside   TopUpStatus = "set_aside" // paid, but not what was asked for: a person decides
)

// ApplySession takes a top-up to where its session stands, with the payment to credit
// when it was paid. The session's word alone counts: one that was paid at the
// second of its expiry is credited. Credited is final; a second page of the same
// top-up that was paid as well, as a repeat of the call that made it can leave one,
// is for a person to give back.
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

// matches reports whether the session sold what was asked for.
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
