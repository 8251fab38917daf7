package engine

import "strings"

// maxExpansion is how deep a path of expand may go, as at Stripe.
const maxExpansion = 4

// expandable lists the properties that hold an id and can hold its object.
var expandable = map[string]bool{
	"charge": true, "configuration": true, "customer": true, "default_payment_method": true, "default_price": true, "invoice": true,
	"latest_charge": true, "latest_invoice": true, "payment_intent": true, "payment_method": true, "price": true, "product": true,
	"schedule": true, "subscription": true, "test_clock": true,
}

// Expand puts objects in the place of their ids, along the paths that the caller
// names, such as "latest_invoice.payment_intent" or, in a list, "data.customer".
func (w *Account) Expand(doc Doc, paths []string) error {
	for _, path := range paths {
		names := strings.Split(path, ".")
		if len(names) > maxExpansion+1 {
			return invalid("expand", "You cannot expand more than %d levels of a property. Property: %s.", maxExpansion, path)
		}
		if err := w.expand(doc, names, path); err != nil {
			return err
		}
	}
	return nil
}

func (w *Account) expand(doc Doc, names []string, path string) error {
	name, rest := names[0], names[1:]
	value, there := doc[name]
	if !there {
		if value, there = w.includable(doc, name); !there {
			return errNotExpandable(path)
		}
		doc[name] = value
	}
	if id, isID := value.(string); isID && expandable[name] {
		o, found := w.object(name, id)
		if !found {
			return nil
		}
		value = w.Render(o)
		doc[name] = value
	}
	var inside []Doc
	switch value := value.(type) {
	case Doc:
		inside = []Doc{value}
	case []Doc:
		inside = value
	case nil:
		return nil
	default:
		return errNotExpandable(path)
	}
	if len(rest) == 0 {
		return nil
	}
	for _, element := range inside {
		if err := w.expand(element, rest, path); err != nil {
			return err
		}
	}
	return nil
}

// includable are lists that an object leaves out unless it is asked.
func (w *Account) includable(doc Doc, name string) (any, bool) {
	id, _ := doc["id"].(string)
	switch doc["object"] {
	case "checkout.session":
		if session := w.Sessions.Get(id); session != nil && name == "line_items" {
			return w.sessionLines(session), true
		}
	case "charge":
		if charge := w.Charges.Get(id); charge != nil && name == "refunds" {
			return w.chargeRefunds(charge), true
		}
	}
	return nil, false
}

func errNotExpandable(path string) *Refusal {
	return invalid("expand", "This property cannot be expanded (%s).", path)
}

// object finds what a property refers to.
func (w *Account) object(property, id string) (Object, bool) {
	key, known := KeyOf(id)
	if property == "product" || property == "default_product" {
		key, known = ProductKey(id), true
	}
	if !known {
		return nil, false
	}
	switch kind, _, _ := strings.Cut(key, "/"); kind {
	case kindInvoice:
		return present(w.Invoices.Get(id))
	case kindIntent:
		return present(w.Intents.Get(id))
	case kindCharge:
		return present(w.Charges.Get(id))
	case kindSubscription:
		return present(w.Subscriptions.Get(id))
	case kindCustomer:
		return present(w.Customers.Get(id))
	case kindPrice:
		return present(w.Prices.Get(id))
	case kindProduct:
		return present(w.Products.Get(id))
	case kindMethod:
		return present(w.Methods.Get(id))
	case kindSchedule:
		return present(w.Schedules.Get(id))
	case kindSession:
		return present(w.Sessions.Get(id))
	case kindConfiguration:
		return present(w.Configurations.Get(id))
	case kindTestClock:
		return present(w.TestClocks.Get(id))
	}
	return nil, false
}

// present is an object, if there is one.
func present[O any](o *O) (Object, bool) {
	if o == nil {
		return nil, false
	}
	return any(o).(Object), true
}
