package engine

func (p *Intent) render(a *Account) Doc {
	doc := p.doc("payment_intent").with(Doc{
		"amount": p.Amount, "amount_capturable": 0, "amount_details": Doc{"tip": Doc{}}, "amount_received": 0, "application": nil,
		"application_fee_amount": nil, "automatic_payment_methods": nil, "canceled_at": nil, "cancellation_reason": nil,
		"capture_method": "automatic", "client_secret": p.Secret, "confirmation_method": "automatic", "currency": p.Currency,
		"customer": null(p.Customer), "description": nil, "invoice": null(p.Invoice), "last_payment_error": nil,
		"latest_charge": null(p.Charge), "metadata": metadataDoc(p.Metadata), "next_action": nil, "on_behalf_of": nil,
		"payment_method": null(p.Method), "payment_method_configuration_details": nil, "payment_method_options": Doc{},
		"payment_method_types": []string{"card"}, "processing": nil, "receipt_email": nil, "review": nil, "setup_future_usage": nil,
		"shipping": nil, "statement_descriptor": nil, "statement_descriptor_suffix": nil, "status": p.Status,
		"transfer_data": nil, "transfer_group": nil,
	})
	switch p.Status {
	case succeeded:
		doc["amount_received"] = p.Amount
	case canceled:
		doc["cancellation_reason"] = "void_invoice"
	case requiresAction:
		if invoice := a.Invoices.Get(p.Invoice); invoice != nil {
			doc["next_action"] = Doc{"type": "redirect_to_url", "redirect_to_url": Doc{"return_url": nil, "url": a.invoiceURL(invoice)}}
		}
	}
	if p.Error != (Decline{}) {
		problem := Doc{"type": cardError, "code": p.Error.Code, "message": p.Error.Message}
		// Present for a decline by the bank only; otherwise the field is absent, not null.
		if p.Error.DeclineCode != "" {
			problem["decline_code"] = p.Error.DeclineCode
		}
		doc["last_payment_error"] = problem
	}
	return doc
}

func (c *Charge) render(a *Account) Doc {
	method := a.Methods.Get(c.Method)
	kind, details := method.details()
	if method.Bank() {
		for _, name := range []string{"financial_connections_account", "networks", "status_details"} {
			delete(details, name) // part of the method, not of a charge
		}
	}
	return c.doc("charge").with(Doc{
		"amount": c.Amount, "amount_captured": c.Amount, "amount_refunded": c.Refunded, "application": nil, "application_fee": nil,
		"application_fee_amount": nil, "balance_transaction": nil, "billing_details": noAddress, "calculated_statement_descriptor": "SANDBOX",
		"captured": true, "currency": c.Currency, "customer": null(c.Customer), "description": nil, "disputed": c.Disputed,
		"failure_balance_transaction": nil, "failure_code": nil, "failure_message": nil, "fraud_details": Doc{}, "invoice": null(c.Invoice),
		"metadata": metadataDoc(c.Metadata), "on_behalf_of": nil, "outcome": nil, "paid": true, "payment_intent": c.Intent,
		"payment_method": c.Method, "payment_method_details": Doc{"type": kind, kind: details}, "receipt_email": nil, "receipt_number": nil,
		"receipt_url": a.receiptURL(c), "refunded": c.Refunded == c.Amount, "review": nil, "shipping": nil, "source_transfer": nil,
		"statement_descriptor": nil, "statement_descriptor_suffix": nil, "status": succeeded, "transfer_data": nil, "transfer_group": nil,
	})
}

// receiptURL is the hosted page of the invoice or the checkout.
func (a *Account) receiptURL(c *Charge) any {
	if invoice := a.Invoices.Get(c.Invoice); invoice != nil && invoice.Token != "" {
		return a.invoiceURL(invoice)
	}
	if intent := a.Intents.Get(c.Intent); intent != nil {
		if session := a.Sessions.Get(intent.Session); session != nil {
			return a.sessionURL(session)
		}
	}
	return nil
}

// chargeRefunds is the list that a charge shows when refunds is expanded.
func (a *Account) chargeRefunds(c *Charge) Doc {
	refunds, more, err := List(a.Refunds, Page{Limit: 10}, Filter[Refund]{Parent: c.ID})
	var docs []Doc
	for _, refund := range refunds {
		docs = append(docs, a.Render(refund))
	}
	return Listed("/v1/charges/"+c.ID+"/refunds", docs, more && err == nil)
}

func (r *Refund) render(a *Account) Doc {
	doc := r.doc("refund").with(Doc{
		"amount": r.Amount, "balance_transaction": nil, "charge": r.Charge, "currency": r.Currency,
		"destination_details": Doc{"type": "card", "card": Doc{"type": "refund", "reference_status": "pending", "reference_type": "acquirer_reference_number"}},
		"metadata":            metadataDoc(r.Metadata), "payment_intent": r.Intent, "reason": null(r.Reason), "receipt_number": nil,
		"source_transfer_reversal": nil, "status": r.Status, "transfer_reversal": nil,
	})
	// A refund has no livemode in this version of the API.
	delete(doc, "livemode")
	if r.Failure != "" {
		doc["failure_reason"] = r.Failure
	}
	return doc
}

// evidenceTime is how long evidence for a dispute can be submitted.
const evidenceTime = 7 * day

func (d *Dispute) render(a *Account) Doc {
	movements := []Doc{}
	for _, moved := range d.Movements {
		movements = append(movements, Doc{
			"id": moved.ID, "object": "balance_transaction", "amount": moved.Amount, "available_on": moved.At, "created": moved.At,
			"currency": d.Currency, "description": nil, "exchange_rate": nil, "fee": 0, "fee_details": none, "net": moved.Amount,
			"reporting_category": "dispute", "source": d.ID, "status": "available", "type": "adjustment",
		})
	}
	return d.doc("dispute").with(Doc{
		"amount": d.Amount, "balance_transactions": movements, "charge": d.Charge, "currency": d.Currency,
		"evidence": Doc{}, "metadata": metadataDoc(nil), "payment_intent": d.Intent, "reason": "fraudulent", "status": d.Status,
		"evidence_details": Doc{
			"due_by": d.Created + evidenceTime, "has_evidence": false, "past_due": false, "submission_count": 0,
		},
		"is_charge_refundable": d.Status == warningNeedsResponse || d.Status == warningClosed || d.Status == won,
	})
}
