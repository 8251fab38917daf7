package engine

import (
	"slices"
	"strconv"
)

var noTax = Doc{"enabled": false, "liability": nil, "status": nil}

func (s *Session) render(a *Account) Doc {
	doc := s.doc("checkout.session").with(Doc{
		"after_expiration": nil, "allow_promotion_codes": nil, "amount_subtotal": s.Total, "amount_total": s.Total,
		"automatic_tax": noTax, "billing_address_collection": nil, "cancel_url": null(s.Cancel),
		"client_reference_id": null(s.Reference), "client_secret": nil, "consent": nil, "consent_collection": nil, "currency": s.Currency,
		"currency_conversion": nil, "custom_fields": none,
		"custom_text": Doc{"after_submit": nil, "shipping_address": nil, "submit": nil, "terms_of_service_acceptance": nil},
		"customer":    null(s.Customer), "customer_creation": nil, "customer_details": a.customerDetails(s), "customer_email": null(s.Email),
		"expires_at": s.Expires, "invoice": null(s.Invoice), "invoice_creation": nil, "locale": nil, "metadata": metadataDoc(s.Metadata),
		"mode": s.Mode, "payment_intent": null(s.Intent), "payment_link": nil, "payment_method_collection": null(s.Collects),
		"payment_method_configuration_details": nil, "payment_method_options": Doc{}, "payment_method_types": []string{"card"},
		"payment_status": s.Payment, "phone_number_collection": Doc{"enabled": false}, "recovered_from": nil,
		"saved_payment_method_options": nil, "setup_intent": nil, "shipping_address_collection": nil, "shipping_cost": nil,
		"shipping_details": nil, "shipping_options": none, "status": s.Status, "submit_type": nil, "subscription": null(s.Subscription),
		"success_url":   s.Success,
		"total_details": Doc{"amount_discount": 0, "amount_shipping": 0, "amount_tax": 0}, "ui_mode": "hosted", "url": nil,
	})
	if s.Status == open {
		doc["url"] = a.sessionURL(s)
	}
	if s.Mode == modeSubscription && s.Collects == "" {
		doc["payment_method_collection"] = "always"
	}
	return doc
}

// customerDetails is null until an email address is known.
func (a *Account) customerDetails(s *Session) any {
	email, name := any(null(s.Email)), any(nil)
	if s.Customer != "" {
		c := a.customerOrZero(s.Customer)
		email, name = null(c.Email), null(c.Name)
	}
	if email == nil && s.Status != complete {
		return nil
	}
	return Doc{"address": nil, "email": email, "name": name, "phone": nil, "tax_exempt": "none", "tax_ids": none}
}

// customerOrZero is the customer, or one without fields.
func (a *Account) customerOrZero(id string) Customer {
	if c := a.Customers.Get(id); c != nil {
		return *c
	}
	return Customer{}
}

// sessionLines is the list that a session shows when line_items is expanded.
func (a *Account) sessionLines(s *Session) Doc {
	var lines []Doc
	for _, line := range s.Lines {
		price := a.Prices.Get(line.Price)
		amount := price.Amount * line.Quantity
		lines = append(lines, Doc{
			"id": line.ID, "object": "item", "amount_discount": 0, "amount_subtotal": amount, "amount_tax": 0, "amount_total": amount,
			"currency": price.Currency, "description": line.Description, "price": a.Render(price), "quantity": line.Quantity,
		})
	}
	return Listed("/v1/checkout/sessions/"+s.ID+"/line_items", lines, false)
}

func (s *Subscription) render(a *Account) Doc {
	doc := s.doc("subscription").with(Doc{
		"application": nil, "application_fee_percent": nil, "automatic_tax": Doc{"enabled": false, "liability": nil},
		"billing_cycle_anchor": s.Anchor, "billing_cycle_anchor_config": nil, "billing_thresholds": nil,
		"cancel_at": null(s.CancelAt), "cancel_at_period_end": s.CancelAtPeriodEnd, "canceled_at": null(s.CanceledAt),
		"cancellation_details": Doc{"comment": nil, "feedback": nil, "reason": null(s.EndReason)},
		"collection_method":    "charge_automatically", "currency": s.Currency,
		"current_period_end": s.PeriodEnd, "current_period_start": s.PeriodStart, "customer": s.Customer, "days_until_due": nil,
		"default_payment_method": null(s.Method), "default_source": nil, "default_tax_rates": none, "description": nil, "discount": nil,
		"discounts": none, "ended_at": null(s.EndedAt),
		"invoice_settings": Doc{"account_tax_ids": nil, "issuer": Doc{"type": "self"}},
		"items":            Listed("/v1/subscription_items?subscription="+s.ID, a.itemDocs(s.ID, s.Items), false),
		"latest_invoice":   null(s.LatestInvoice), "metadata": metadataDoc(s.Metadata), "next_pending_invoice_item_invoice": nil,
		"on_behalf_of": nil, "pause_collection": nil,
		"payment_settings": Doc{
			"payment_method_options": nil, "payment_method_types": nil,
			"save_default_payment_method": "off",
		},
		"pending_invoice_item_interval": nil, "pending_setup_intent": nil, "pending_update": nil, "schedule": null(s.Schedule),
		"start_date": s.Created, "status": s.Status, "test_clock": null(a.customerOrZero(s.Customer).TestClock), "transfer_data": nil, "trial_end": nil,
		"trial_settings": Doc{"end_behavior": Doc{"missing_payment_method": "create_invoice"}}, "trial_start": nil,
	})
	if s.SavesMethod != "" {
		doc["payment_settings"].(Doc)["save_default_payment_method"] = s.SavesMethod
	}
	if p := s.Pending; p != nil {
		doc["pending_update"] = Doc{
			"billing_cycle_anchor": null(p.Anchor), "expires_at": p.Expires, "subscription_items": a.itemDocs(s.ID, p.Items),
			"trial_end": nil, "trial_from_plan": nil,
		}
	}
	return doc
}

func (a *Account) itemDocs(subscription string, items []Item) []Doc {
	var docs []Doc
	for _, item := range items {
		docs = append(docs, Doc{
			"id": item.ID, "object": "subscription_item", "billing_thresholds": nil, "created": item.Created, "discounts": none,
			"metadata": metadataDoc(item.Metadata), "price": a.Render(a.Prices.Get(item.Price)), "quantity": item.Quantity,
			"subscription": subscription, "tax_rates": none,
		})
	}
	return docs
}

func (c *Schedule) render(a *Account) Doc {
	var phases []Doc
	for _, phase := range c.Phases {
		phases = append(phases, a.phaseDoc(phase))
	}
	doc := c.doc("subscription_schedule").with(Doc{
		"application": nil, "canceled_at": null(c.CanceledAt), "completed_at": nil, "current_phase": nil, "customer": c.Customer,
		"default_settings": Doc{
			"application_fee_percent": nil, "automatic_tax": Doc{"enabled": false, "liability": nil},
			"billing_cycle_anchor": "automatic", "billing_thresholds": nil, "collection_method": "charge_automatically",
			"default_payment_method": nil, "description": nil,
			"invoice_settings": Doc{"account_tax_ids": nil, "days_until_due": nil, "issuer": Doc{"type": "self"}},
			"on_behalf_of":     nil, "transfer_data": nil,
		},
		"end_behavior": c.EndBehavior, "metadata": metadataDoc(c.Metadata), "phases": phases, "released_at": null(c.ReleasedAt),
		"released_subscription": null(c.Released), "status": c.Status, "subscription": null(c.Subscription), "test_clock": nil,
	})
	if s := a.Subscriptions.Get(c.Subscription); s != nil && c.Status == active {
		phase := c.phaseAt(s.PeriodStart)
		doc["current_phase"] = Doc{"start_date": phase.Start, "end_date": phase.End}
	}
	return doc
}

func (a *Account) phaseDoc(phase Phase) Doc {
	var items []Doc
	for _, item := range phase.Items {
		items = append(items, Doc{
			"billing_thresholds": nil, "discounts": none, "metadata": metadataDoc(nil), "price": item.Price, "quantity": item.Quantity, "tax_rates": none,
		})
	}
	anchor := any(nil)
	if phase.Anchors {
		anchor = "phase_start"
	}
	return Doc{
		"add_invoice_items": none, "application_fee_percent": nil, "billing_cycle_anchor": anchor, "billing_thresholds": nil,
		"collection_method": nil, "coupon": nil, "currency": a.Prices.Get(phase.Items[0].Price).Currency, "default_payment_method": nil,
		"default_tax_rates": none, "description": nil, "discounts": none, "end_date": phase.End, "invoice_settings": nil, "items": items,
		"metadata": metadataDoc(nil), "on_behalf_of": nil, "proration_behavior": phase.Proration, "start_date": phase.Start,
		"transfer_data": nil, "trial_end": nil,
	}
}

func (i *Invoice) render(a *Account) Doc {
	customer := a.customerOrZero(i.Customer)
	doc := i.doc("invoice").with(Doc{
		"account_country": "US", "account_name": "Sandbox", "account_tax_ids": nil, "amount_due": i.AmountDue, "amount_paid": i.AmountPaid,
		"amount_remaining": i.AmountDue - i.AmountPaid, "amount_shipping": 0, "application": nil, "application_fee_amount": nil,
		"attempt_count": i.Attempts, "attempted": i.Attempts > 0 || i.Status == settled, "auto_advance": i.Advances && (i.Status == draft || i.Status == open),
		"automatic_tax": noTax, "automatically_finalizes_at": null(i.FinalizesAt), "billing_reason": i.Reason, "charge": null(i.Charge),
		"collection_method": "charge_automatically", "currency": i.Currency, "custom_fields": nil, "customer": i.Customer,
		"customer_address": nil, "customer_email": null(customer.Email), "customer_name": null(customer.Name), "customer_phone": nil,
		"customer_shipping": nil, "customer_tax_exempt": "none", "customer_tax_ids": none, "default_payment_method": nil, "default_source": nil,
		"default_tax_rates": none, "description": nil, "discount": nil, "discounts": none, "due_date": nil, "effective_at": null(i.FinalizedAt),
		"ending_balance": nil, "footer": nil, "from_invoice": nil, "hosted_invoice_url": nil, "invoice_pdf": nil,
		"issuer": Doc{"type": "self"}, "last_finalization_error": nil, "latest_revision": nil,
		"lines":    a.linesPage(i, 0, min(embeddedLines, len(i.Lines))),
		"metadata": metadataDoc(nil), "next_payment_attempt": null(i.NextAttempt), "number": null(i.Number), "on_behalf_of": nil,
		"paid": i.Status == settled, "paid_out_of_band": false, "payment_intent": null(i.Intent),
		"payment_settings": Doc{"default_mandate": nil, "payment_method_options": nil, "payment_method_types": nil},
		"period_end":       i.PeriodEnd, "period_start": i.PeriodStart, "post_payment_credit_notes_amount": 0, "pre_payment_credit_notes_amount": 0,
		"quote": nil, "receipt_number": nil, "rendering": nil, "shipping_cost": nil, "shipping_details": nil,
		"starting_balance": i.StartingBalance, "statement_descriptor": nil, "status": i.Status,
		"status_transitions": Doc{
			"finalized_at": null(i.FinalizedAt), "marked_uncollectible_at": nil, "paid_at": null(i.PaidAt), "voided_at": null(i.VoidedAt),
		},
		"subscription": i.Subscription, "subscription_details": Doc{"metadata": metadataDoc(i.Metadata)},
		"subtotal": i.Total, "subtotal_excluding_tax": i.Total, "tax": nil, "test_clock": null(customer.TestClock), "total": i.Total,
		"total_discount_amounts": none, "total_excluding_tax": i.Total, "total_tax_amounts": none, "transfer_data": nil, "webhooks_delivered_at": nil,
	})
	if i.Token != "" {
		doc["hosted_invoice_url"], doc["ending_balance"] = a.invoiceURL(i), i.EndingBalance
	}
	return doc
}

// embeddedLines is how many of its lines an invoice shows, as at Stripe.
const embeddedLines = 10

// InvoiceLines renders a page of an invoice's lines, which keep their order.
func (a *Account) InvoiceLines(id string, page Page) (Doc, error) {
	i, err := Get(a.Invoices, "invoice", id)
	if err != nil {
		return nil, err
	}
	position := func(id string) int { return slices.IndexFunc(i.Lines, func(l Line) bool { return l.ID == id }) }
	first := 0
	switch {
	case page.Before != "":
		end := position(page.Before)
		if end < 0 {
			return nil, missing("line item", "ending_before", page.Before)
		}
		first = max(0, end-page.Limit)
		return Listed(linesURL(i), a.lineDocs(i, first, end), first > 0), nil
	case page.After != "":
		if first = position(page.After) + 1; first == 0 {
			return nil, missing("line item", "starting_after", page.After)
		}
	}
	return a.linesPage(i, first, min(first+page.Limit, len(i.Lines))), nil
}

func (a *Account) linesPage(i *Invoice, first, end int) Doc {
	return Listed(linesURL(i), a.lineDocs(i, first, end), end < len(i.Lines))
}

func linesURL(i *Invoice) string { return "/v1/invoices/" + i.ID + "/lines" }

func (a *Account) lineDocs(i *Invoice, first, end int) []Doc {
	var docs []Doc
	for _, line := range i.Lines[first:end] {
		price := a.Prices.Get(line.Price)
		doc := Doc{
			"id": line.ID, "object": "line_item", "amount": line.Amount, "amount_excluding_tax": line.Amount, "currency": i.Currency,
			"description": line.Description, "discount_amounts": none, "discountable": !line.Proration, "discounts": none, "invoice": i.ID,
			"livemode": false, "metadata": metadataDoc(i.Metadata), "period": Doc{"start": line.Start, "end": line.End}, "price": a.Render(price),
			"proration": line.Proration, "proration_details": Doc{"credited_items": nil}, "quantity": line.Quantity,
			"subscription": i.Subscription, "subscription_item": line.Item, "tax_amounts": none, "tax_rates": none,
			"type": "subscription", "unit_amount_excluding_tax": strconv.FormatInt(price.Amount, 10),
		}
		if line.Proration {
			doc["type"] = "invoiceitem"
		}
		docs = append(docs, doc)
	}
	return docs
}

// Upcoming previews the invoice of the subscription's next renewal.
func (a *Account) Upcoming(env Env, subscription, customer string) (Doc, error) {
	if subscription == "" {
		if live := a.subscriptionsOf(customer); len(live) > 0 {
			subscription = live[0].ID
		}
	}
	s := a.Subscriptions.Get(subscription)
	if s == nil || s.ended() || s.CancelAtPeriodEnd {
		r := NotFound("upcoming invoice", subscription)
		r.Code, r.Message = "invoice_upcoming_none", "No upcoming invoices for customer: "+customer
		return nil, r
	}
	end := a.interval(s.Items).following(s.Anchor, s.PeriodEnd)
	preview := &Invoice{
		Head: Head{Created: s.PeriodEnd}, Customer: s.Customer, Subscription: s.ID, Metadata: s.Metadata, Reason: "upcoming", Status: draft,
		Currency: s.Currency, Lines: append(s.Prorations[:len(s.Prorations):len(s.Prorations)], a.linesFor(s.Items, s.PeriodEnd, end)...),
		PeriodStart: s.PeriodStart, PeriodEnd: s.PeriodEnd, NextAttempt: s.PeriodEnd + draftTime,
	}
	for _, line := range preview.Lines {
		preview.Total += line.Amount
	}
	a.computeAmountDue(preview)
	doc := preview.render(a)
	delete(doc, "id")
	return doc, nil
}
