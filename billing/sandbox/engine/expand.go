package engine

import "strings"

// maxExpansion is how deep a path of expand may go, as at Stripe.
const maxExpansion = 4

// expandable lists the properties that hold an id and can hold its object.
var expandable = map[string]bool{
	"charge": true, "configuration": true, "customer": true, "default_payment_method": true, "default_price": true, "invoice": true,
	"latest_charge": true, "latest_invoice": true, "payment_intent": true, "payment_method": true, "price": true, "product": true,
	"schedule": true, "subscription": true,
}

// Expand puts objects in the place of their ids, along the paths that the caller
// names, such as "latest_invoice.payment_intent" or, in a list, "data.customer".
func (w *World) Expand(doc Doc, paths []string) error {
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

func (w *World) expand(doc Doc, names []string, path string) error {
	name, rest := names[0], names[1:]
	value, there := doc[name]
	if !there {
		if value, there = w.includable(doc, name); !there {
			return errNotExpandable(path)
		}
		doc[name] = value
	}
	if id, isID := value.(string); isID && expandable[name] {
		o, found := w.object(id)
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
func (w *World) includable(doc Doc, name string) (any, bool) {
	id, _ := doc["id"].(string)
	if session := w.Sessions[id]; session != nil && name == "line_items" {
		return w.sessionLines(session), true
	}
	if charge := w.Charges[id]; charge != nil && name == "refunds" {
		return w.chargeRefunds(charge), true
	}
	return nil, false
}

func errNotExpandable(path string) *Refusal {
	return invalid("expand", "This property cannot be expanded (%s).", path)
}

// object finds whatever has the id.
func (w *World) object(id string) (Object, bool) {
	lookups := []func() (Object, bool){
		in(w.Invoices, id), in(w.Intents, id), in(w.Charges, id), in(w.Subscriptions, id), in(w.Customers, id), in(w.Prices, id),
		in(w.Products, id), in(w.Methods, id), in(w.Schedules, id), in(w.Sessions, id), in(w.Configurations, id),
	}
	for _, lookup := range lookups {
		if o, found := lookup(); found {
			return o, true
		}
	}
	return nil, false
}

func in[T Object](all map[string]T, id string) func() (Object, bool) {
	return func() (Object, bool) {
		o, found := all[id]
		return o, found
	}
}
