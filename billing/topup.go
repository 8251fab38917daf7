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

// Settle takes a top-up to where its session stands, with the payment to credit
// when it was paid. The session's word alone counts: one that was paid at the
// second of its expiry is credited. Credited is final; a second page of the same
// top-up that was paid as well, as a repeat of the call that made it can leave one,
// is for a person to give back.
func (t TopUp) Settle(said ProviderSession) (next TopUp, settled []Payment, alerts []Alert) {
	if t.Status == TopUpPaid {
		if said.Paid && said.ID != t.SessionID {
			alerts = []Alert{{AmountMismatch, said.ID}}
		}
		return t, nil, alerts
	}
	was := t.Status
	if t.Status = t.statusOf(said); t.Status != TopUpSetAside {
		t.SessionID, t.URL, t.ExpiresAt = said.ID, said.URL, said.ExpiresAt
	}
	switch {
	case t.Status == TopUpPaid:
		return t, []Payment{t.payment(said)}, nil
	case t.Status == TopUpSetAside && was != TopUpSetAside:
		return t, nil, []Alert{{AmountMismatch, said.ID}}
	default:
		return t, nil, nil
	}
}

func (t TopUp) statusOf(said ProviderSession) TopUpStatus {
	switch {
	case said.Paid && t.asked(said):
		return TopUpPaid
	case said.Paid:
		return TopUpSetAside
	case said.Failed:
		return TopUpFailed
	case said.Status == SessionComplete:
		return TopUpProcessing
	case said.Status == SessionExpired:
		return TopUpExpired
	default:
		return TopUpOpen
	}
}

// asked reports whether the session sold what was asked for.
func (t TopUp) asked(said ProviderSession) bool {
	return said.AmountTotal == t.AmountCents && said.Currency == t.Currency && said.Live == t.Live &&
		said.CustomerID == t.CustomerID && (t.SessionID == "" || t.SessionID == said.ID)
}

func (t TopUp) payment(said ProviderSession) Payment {
	return Payment{
		Source:      Source{Session, said.ID},
		Credits:     []Grant{t.Credit},
		AmountCents: said.AmountTotal,
		Currency:    said.Currency,
		IntentID:    said.IntentID,
		ChargeID:    said.ChargeID,
	}
}
