package cashier_test

import "strings"

// modelProvider is what the judge reads of the sandbox's stored document. Times are
// in seconds, as the provider has them.
type modelProvider struct {
	Offset        int64
	Customers     map[string]*struct{ Method string }
	Methods       map[string]*providerMethod
	Sessions      map[string]*providerSession
	Subscriptions map[string]*providerSubscription
	Invoices      map[string]*providerInvoice
	Intents       map[string]*struct{ Charge, Session string }
	Charges       map[string]*providerCharge
	Refunds       map[string]*struct {
		Charge, Status string
		Amount         int64
	}
	Disputes map[string]*providerDispute
}

type providerMethod struct{ Card string }

// Bank reports whether the method is a bank account.
func (p *providerMethod) Bank() bool { return strings.HasPrefix(p.Card, "bank_") }

type providerSession struct {
	ID, Status, Payment, Customer, Collects, Intent, Subscription string
	Total, Expires                                                int64
}

// Free reports whether the checkout is completed without a card.
func (s *providerSession) Free() bool { return s.Total == 0 && s.Collects == "if_required" }

type providerSubscription struct {
	ID, Customer, Status, Method, EndReason string
	Created, EndedAt                        int64
	CancelAtPeriodEnd                       bool
	Pending                                 *struct{ Expires int64 }
}

type providerInvoice struct {
	ID, Customer, Subscription, Status, Reason, Charge string
	Nth, Created, PaidAt, AmountPaid                   int64
	Lines                                              []struct {
		Price      string
		Start, End int64
	}
}

type providerCharge struct {
	ID, Customer, Intent, Invoice string
	Nth, Created, Amount          int64
}

type providerDispute struct {
	Charge    string
	Movements []struct{ Amount int64 }
}
