package engine

import "strings"

// maxExpansion is the maximum depth of an expand path, as at Stripe.
const maxExpansion = 4

// expandable lists the properties that can be expanded from an id to its object.
var expandable = map[string]bool{
	"charge": true, "configuration": true, "customer": true, "default_payment_method": true, "default_price": true, "invoice": true,
	"latest_charge": true, "latest_invoice": true, "payment_intent": true, "payment_method": true, "price": true, "product": true,
	"schedule": true, "subscription": true, "test_clock": true,
}

// Expand replaces ids with their objects along the given paths, such as
// "latest_invoice.payment_intent" or, in a list, "data.customer".
func (a *Account) Expand(doc Doc, paths []string) error {
	for _, path := range paths {
		names := strings.Split(path, ".")
		if len(names) > maxExpansion+1 {
			return invalid("expand", "You cannot expand more than %d levels of a property. Property: %s.", maxExpansion, path)
		}
		if err := a.expand(doc, names, path); err != nil {
			return err
		}
	}
	return nil
}

func (a *Account) expand(doc Doc, names []string, path string) error {
	name, rest := names[0], names[1:]
	value, there := doc[name]
	if !there {
		if value, there = a.includable(doc, name); !there {
			return errNotExpandable(path)
		}
		doc[name] = value
	}
	if id, isID := value.(string); isID && expandable[name] {
		o, found := a.object(name, id)
		if !found {
			return nil
		}
		value = a.Render(o)
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
		if err := a.expand(element, rest, path); err != nil {
			return err
		}
	}
	return nil
}

// includable returns a list that an object omits unless it is expanded.
func (a *Account) includable(doc Doc, name string) (any, bool) {
	id, _ := doc["id"].(string)
	switch doc["object"] {
	case "checkout.session":
		if session := a.Sessions.Get(id); session != nil && name == "line_items" {
			return a.sessionLines(session), true
		}
	case "charge":
		if charge := a.Charges.Get(id); charge != nil && name == "refunds" {
			return a.chargeRefunds(charge), true
		}
	}
	return nil, false
}

func errNotExpandable(path string) *Refusal {
	return invalid("expand", "This property cannot be expanded (%s).", path)
}

// object finds the object that a property refers to.
func (a *Account) object(property, id string) (Object, bool) {
	key, known := KeyOf(id)
	if property == "product" || property == "default_product" {
		key, known = ProductKey(id), true
	}
	if !known {
		return nil, false
	}
	kind, _, _ := strings.Cut(key, "/")
	return a.tables[kind].object(id)
}
