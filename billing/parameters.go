package billing

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Parameters are those of an operation's calls: the struct of its kind is set, and no
// other. They are stored as JSON in which every value is a string. Operations outlive
// releases, so the keys cannot change.
type Parameters struct {
	Change   *ChangeParameters
	Cancel   *CancelParameters
	Checkout *CheckoutParameters
	TopUp    *TopUpParameters
	Action   *ActionParameters
}

// ChangeParameters are those of OperationChange.
type ChangeParameters struct {
	Command        Command     `json:"act,omitempty"`
	SubscriptionID string      `json:"subscription,omitempty"` // the provider's; empty for a free one
	PlanKey        string      `json:"plan,omitempty"`         // of the target
	PriceID        string      `json:"price,omitempty"`        // the provider's, of the target
	SameTerms      bool        `json:"stays,omitempty,string"` // whether the target is the current terms, whose price may be archived
	VoidsPriceID   string      `json:"voids,omitempty"`        // the provider's, of the pending upgrade that this one replaces
	Local          LocalChange `json:"then,omitempty"`
	Sessions       SessionIDs  `json:"sessions,omitempty"`       // to expire first
	ExpiresAt      int64       `json:"expires,omitempty,string"` // of the session that sells a replacement
}

// CancelParameters are those of OperationCancel.
type CancelParameters struct {
	Command           Command     `json:"act,omitempty"`
	SubscriptionID    string      `json:"subscription,omitempty"` // the provider's; empty for a free one
	CancelAtPeriodEnd bool        `json:"flag,omitempty,string"`
	VoidPending       bool        `json:"void,omitempty,string"` // whether a pending upgrade is voided too
	RenewalID         string      `json:"renewal,omitempty"`     // the unpaid renewal invoice that is voided
	Local             LocalChange `json:"then,omitempty"`
	Sessions          SessionIDs  `json:"sessions,omitempty"` // to expire first
}

// CheckoutParameters are those of OperationCheckout.
type CheckoutParameters struct {
	Command    Command    `json:"act,omitempty"`
	PlanKey    string     `json:"plan,omitempty"`
	PriceID    string     `json:"price,omitempty"` // the provider's
	Free       bool       `json:"free,omitempty,string"`
	Sessions   SessionIDs `json:"sessions,omitempty"` // to expire first
	SuccessURL string     `json:"success,omitempty"`
	CancelURL  string     `json:"cancel,omitempty"`
	ExpiresAt  int64      `json:"expires,omitempty,string"`
}

// TopUpParameters are those of OperationTopUp.
type TopUpParameters struct {
	Command     Command `json:"act,omitempty"`
	AmountCents int64   `json:"cents,omitempty,string"`
	Currency    string  `json:"currency,omitempty"`
	Name        string  `json:"name,omitempty"` // on the bill
	SuccessURL  string  `json:"success,omitempty"`
	CancelURL   string  `json:"cancel,omitempty"`
	ExpiresAt   int64   `json:"expires,omitempty,string"`
}

// ActionParameters are those of OperationAction.
type ActionParameters struct {
	Kind     ActionKind `json:"action,omitempty"`
	ObjectID string     `json:"object,omitempty"` // the provider's
}

// Command is what an operation does at the provider.
type Command string

// The commands. These strings are stored.
const (
	CommandKeep      Command = "keep"      // cancel scheduled and pending changes
	CommandUpgrade   Command = "upgrade"   // at the provider, for money
	CommandDowngrade Command = "downgrade" // at the provider, with the renewal
	CommandCancel    Command = "flag"      // set or clear cancel_at_period_end
	CommandReplace   Command = "replace"   // sell a subscription that replaces the current one
	CommandCheckout  Command = "checkout"  // sell a first subscription
	CommandTopUp     Command = "topup"     // sell credits
	CommandLocal     Command = "local"     // expire sessions, then change a free subscription
)

// LocalChange is a change to a free subscription.
type LocalChange string

// The changes to a free subscription. These strings are stored.
const (
	LocalKeep     LocalChange = "stay"
	LocalSchedule LocalChange = "queue"
	LocalCancel   LocalChange = "cancel"
)

// SessionIDs are ids of checkout sessions, stored separated by spaces.
type SessionIDs []string

// MarshalText is the stored form.
func (s SessionIDs) MarshalText() ([]byte, error) { return []byte(strings.Join(s, " ")), nil }

// UnmarshalText reads the stored form.
func (s *SessionIDs) UnmarshalText(text []byte) error {
	*s = strings.Fields(string(text))
	return nil
}

func NewParameters(kind OperationKind) (p Parameters) {
	switch kind {
	case OperationChange:
		p.Change = &ChangeParameters{}
	case OperationCancel:
		p.Cancel = &CancelParameters{}
	case OperationCheckout:
		p.Checkout = &CheckoutParameters{}
	case OperationTopUp:
		p.TopUp = &TopUpParameters{}
	case OperationAction:
		p.Action = &ActionParameters{}
	}
	return p
}

// set is the struct that is set; nil for none.
func (p Parameters) set() any {
	switch {
	case p.Change != nil:
		return p.Change
	case p.Cancel != nil:
		return p.Cancel
	case p.Checkout != nil:
		return p.Checkout
	case p.TopUp != nil:
		return p.TopUp
	case p.Action != nil:
		return p.Action
	default:
		return nil
	}
}

// Encode is the stored form.
func (p Parameters) Encode() ([]byte, error) {
	if p.set() == nil {
		return []byte(`{}`), nil
	}
	return json.Marshal(p.set())
}

// DecodeParameters reads the stored form of a kind's parameters.
func DecodeParameters(kind OperationKind, stored []byte) (Parameters, error) {
	p := NewParameters(kind)
	if p.set() == nil {
		return p, fmt.Errorf("billing: unknown operation kind %q", kind)
	}
	if err := json.Unmarshal(stored, p.set()); err != nil {
		return p, fmt.Errorf("billing: parameters of an operation: %w", err)
	}
	return p, nil
}

// Command is what the operation does; empty for an action.
func (p Parameters) Command() Command {
	switch {
	case p.Change != nil:
		return p.Change.Command
	case p.Cancel != nil:
		return p.Cancel.Command
	case p.Checkout != nil:
		return p.Checkout.Command
	case p.TopUp != nil:
		return p.TopUp.Command
	default:
		return ""
	}
}

// SubscriptionID is the provider's subscription that is changed; empty for none.
func (p Parameters) SubscriptionID() string {
	switch {
	case p.Change != nil:
		return p.Change.SubscriptionID
	case p.Cancel != nil:
		return p.Cancel.SubscriptionID
	default:
		return ""
	}
}

// ObjectID is the provider's object that the operation is about; empty for none.
func (p Parameters) ObjectID() string {
	if p.Action != nil {
		return p.Action.ObjectID
	}
	return p.SubscriptionID()
}

// PlanKey is the plan of the target; empty for none.
func (p Parameters) PlanKey() string {
	switch {
	case p.Change != nil:
		return p.Change.PlanKey
	case p.Checkout != nil:
		return p.Checkout.PlanKey
	default:
		return ""
	}
}

// Sessions are the checkout sessions to expire first.
func (p Parameters) Sessions() []string {
	switch {
	case p.Change != nil:
		return p.Change.Sessions
	case p.Cancel != nil:
		return p.Cancel.Sessions
	case p.Checkout != nil:
		return p.Checkout.Sessions
	default:
		return nil
	}
}

// Cancels reports whether the operation ends the subscription with its period.
func (p Parameters) Cancels() bool { return p.Cancel != nil && p.Cancel.CancelAtPeriodEnd }
