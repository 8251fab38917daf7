package engine

import (
	"maps"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// Render returns an object as the API shows it, with ids where objects can be expanded.
// Fields that the sandbox does not use are included when the API always sends them:
// typed clients expect them.
func (a *Account) Render(o Object) Doc { return o.render(a) }

func (h *Head) doc(kind string) Doc {
	return Doc{"id": h.ID, "object": kind, "created": h.Created, "livemode": false}
}

// with adds fields to a document.
func (d Doc) with(fields Doc) Doc {
	maps.Copy(d, fields)
	return d
}

// null is JSON null for a zero value.
func null[T comparable](value T) any {
	var none T
	if value == none {
		return nil
	}
	return value
}

// metadataDoc renders metadata as an object, also when it is empty.
func metadataDoc(metadata map[string]string) map[string]string {
	if metadata == nil {
		return map[string]string{}
	}
	return metadata
}

// Listed renders a list object.
func Listed(url string, docs []Doc, more bool) Doc {
	if docs == nil {
		docs = []Doc{}
	}
	return Doc{"object": "list", "url": url, "has_more": more, "data": docs}
}

var none = []string{}

func (p *Product) render(a *Account) Doc {
	return p.doc("product").with(Doc{
		"active": p.Active, "default_price": null(p.DefaultPrice), "description": null(p.Description), "images": none,
		"marketing_features": none, "metadata": metadataDoc(p.Metadata), "name": p.Name, "package_dimensions": nil, "shippable": nil,
		"statement_descriptor": nil, "tax_code": nil, "unit_label": nil, "updated": p.Updated, "url": nil,
	})
}

func (p *Price) render(a *Account) Doc {
	doc := p.doc("price").with(Doc{
		"active": p.Active, "billing_scheme": "per_unit", "currency": p.Currency, "custom_unit_amount": nil,
		"lookup_key": null(p.LookupKey), "metadata": metadataDoc(p.Metadata), "nickname": null(p.Nickname), "product": p.Product,
		"recurring": nil, "tax_behavior": "unspecified", "tiers_mode": nil, "transform_quantity": nil, "type": "one_time",
		"unit_amount": p.Amount, "unit_amount_decimal": strconv.FormatInt(p.Amount, 10),
	})
	if p.Recurring() {
		doc["type"] = "recurring"
		doc["recurring"] = Doc{
			"aggregate_usage": nil, "interval": p.Interval.Unit, "interval_count": p.Interval.Count,
			"meter": nil, "usage_type": "licensed",
		}
	}
	return doc
}

func (c *Customer) render(a *Account) Doc {
	if c.Deleted {
		return Doc{"id": c.ID, "object": "customer", "deleted": true}
	}
	return c.doc("customer").with(Doc{
		"address": nil, "balance": c.Balance, "currency": null(c.Currency), "default_source": nil, "delinquent": false,
		"description": null(c.Description), "discount": nil, "email": null(c.Email), "invoice_prefix": c.Prefix,
		"invoice_settings": Doc{
			"custom_fields": nil, "default_payment_method": null(c.Method), "footer": nil, "rendering_options": nil,
		},
		"metadata": metadataDoc(c.Metadata), "name": null(c.Name), "next_invoice_sequence": c.Invoices + 1, "phone": nil,
		"preferred_locales": none, "shipping": nil, "tax_exempt": "none", "test_clock": null(c.TestClock),
	})
}

var noAddress = Doc{
	"address": Doc{"city": nil, "country": nil, "line1": nil, "line2": nil, "postal_code": nil, "state": nil},
	"email":   nil, "name": nil, "phone": nil,
}

func (p *Method) render(a *Account) Doc {
	kind, details := p.details()
	return p.doc("payment_method").with(Doc{
		"allow_redisplay": "unspecified", "billing_details": noAddress, "customer": null(p.Customer),
		"metadata": metadataDoc(p.Metadata), "type": kind, kind: details,
	})
}

// details renders the card or the bank account.
func (p *Method) details() (kind string, details Doc) {
	if p.Bank() {
		return "us_bank_account", Doc{
			"account_holder_type": "individual", "account_type": "checking", "bank_name": "SANDBOX BANK", "fingerprint": nil,
			"financial_connections_account": nil, "last4": p.Last4, "networks": nil, "routing_number": "110000000", "status_details": nil,
		}
	}
	return "card", Doc{
		"brand": "visa", "checks": nil, "country": "US", "exp_month": 12, "exp_year": 2099,
		"fingerprint": nil, "funding": "credit", "last4": p.Last4, "wallet": nil,
	}
}

func (p *Portal) render(a *Account) Doc {
	doc := p.doc("billing_portal.session").with(Doc{
		"configuration": p.Configuration, "customer": p.Customer, "flow": nil, "locale": nil, "on_behalf_of": nil,
		"return_url": null(p.ReturnURL), "url": a.portalURL(p),
	})
	if p.Flow != "" {
		doc["flow"] = Doc{
			"after_completion":    Doc{"hosted_confirmation": nil, "redirect": nil, "type": "portal_homepage"},
			"subscription_cancel": nil, "subscription_update": nil, "subscription_update_confirm": nil, "type": p.Flow,
		}
	}
	return doc
}

func (c *Configuration) render(a *Account) Doc {
	return c.doc("billing_portal.configuration").with(Doc{
		"active": true, "application": nil, "default_return_url": null(c.ReturnURL), "is_default": c.Default,
		"business_profile": Doc{"headline": null(c.Headline), "privacy_policy_url": nil, "terms_of_service_url": nil},
		"features": Doc{
			"customer_update":       Doc{"allowed_updates": none, "enabled": c.ChangesAddress},
			"invoice_history":       Doc{"enabled": c.ShowsInvoices},
			"payment_method_update": Doc{"enabled": c.ChangesCard},
			"subscription_cancel": Doc{
				"cancellation_reason": Doc{"enabled": false, "options": none},
				"enabled":             c.CancelsOwn, "mode": "at_period_end", "proration_behavior": "none",
			},
			"subscription_update": Doc{"default_allowed_updates": none, "enabled": c.ChangesOwn, "products": nil, "proration_behavior": "none"},
		},
		"login_page": Doc{"enabled": false, "url": nil}, "metadata": metadataDoc(c.Metadata), "updated": c.Created,
	})
}

func (e *Endpoint) render(a *Account) Doc {
	return e.doc("webhook_endpoint").with(Doc{
		"api_version": APIVersion, "application": nil, "description": null(e.Description), "enabled_events": e.Types,
		"metadata": metadataDoc(e.Metadata), "status": "enabled", "url": e.URL,
	})
}

func (e *Event) render(a *Account) Doc {
	data := Doc{"object": jsontext.Value(e.Object)}
	if e.Previous != nil {
		data["previous_attributes"] = jsontext.Value(e.Previous)
	}
	return e.doc("event").with(Doc{
		"api_version": APIVersion, "data": data, "pending_webhooks": a.waitingFor(e.ID), "type": e.Type,
		"request": Doc{"id": null(e.Request.ID), "idempotency_key": null(e.Request.IdempotencyKey)},
	})
}

func (c *TestClock) render(a *Account) Doc {
	status := "ready"
	if a.isAdvancing(c) {
		status = "advancing"
	}
	return c.doc("test_helpers.test_clock").with(Doc{
		"deletes_after": c.Created + 30*day, "frozen_time": c.Frozen, "name": null(c.Name), "status": status, "status_details": Doc{},
	})
}

func (a *Account) RenderAccount() Doc {
	return Doc{
		"id": a.urls.Account, "object": "account", "charges_enabled": true, "country": "US", "default_currency": "usd",
		"details_submitted": true, "email": nil, "payouts_enabled": true, "type": "standard", "metadata": metadataDoc(nil),
	}
}

func (a *Account) sessionURL(s *Session) string { return a.urls.Site + "/checkout/" + s.ID }

func (a *Account) invoiceURL(i *Invoice) string { return a.urls.Site + "/invoice/" + i.Token }

func (a *Account) portalURL(p *Portal) string { return a.urls.Site + "/portal/" + p.Token }
