package cashier_test

import (
	"encoding/json"
	"strings"

	"purser/payments/sandbox/persist"
)

// modelProvider is what the judge reads of the sandbox's stored rows. Times are in
// seconds, as the provider has them.
type modelProvider struct {
	Customers     map[string]*providerCustomer
	Methods       map[string]*providerMethod
	Sessions      map[string]*providerSession
	Subscriptions map[string]*providerSubscription
	Invoices      map[string]*providerInvoice
	Intents       map[string]*providerIntent
	Charges       map[string]*providerCharge
	Refunds       map[string]*providerRefund
	Disputes      map[string]*providerDispute
}

type providerCustomer struct{ Method string }

type providerIntent struct{ Charge, Session string }

type providerRefund struct {
	Charge, Status string
	Amount         int64
}

func newModelProvider() *modelProvider {
	return &modelProvider{
		Customers: map[string]*providerCustomer{}, Methods: map[string]*providerMethod{}, Sessions: map[string]*providerSession{},
		Subscriptions: map[string]*providerSubscription{}, Invoices: map[string]*providerInvoice{}, Intents: map[string]*providerIntent{},
		Charges: map[string]*providerCharge{}, Refunds: map[string]*providerRefund{}, Disputes: map[string]*providerDispute{},
	}
}

// add reads one row. Kinds that the judge does not know are left out.
func (w *modelProvider) add(row persist.Row) error {
	switch row.Kind {
	case "customer":
		return addObject(w.Customers, row)
	case "method":
		return addObject(w.Methods, row)
	case "session":
		return addObject(w.Sessions, row)
	case "subscription":
		return addObject(w.Subscriptions, row)
	case "invoice":
		return addObject(w.Invoices, row)
	case "intent":
		return addObject(w.Intents, row)
	case "charge":
		return addObject(w.Charges, row)
	case "refund":
		return addObject(w.Refunds, row)
	case "dispute":
		return addObject(w.Disputes, row)
	}
	return nil
}

func addObject[O any](table map[string]*O, row persist.Row) error {
	object := new(O)
	table[strings.TrimPrefix(row.Key, row.Kind+"/")] = object
	return json.Unmarshal(row.Document, object)
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
