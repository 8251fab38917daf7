package engine

// BalanceTransaction is an adjustment of a customer's balance. A negative amount is a
// credit: it lowers the next invoice's amount due.
type BalanceTransaction struct {
	Head
	Customer      string
	Type          string
	Amount        int64
	EndingBalance int64
	Currency      string
	Invoice       string // that it was applied to or unapplied from
	Description   string
	Metadata      map[string]string
}

// The types of balance transactions.
const (
	adjustment           = "adjustment"
	appliedToInvoice     = "applied_to_invoice"
	invoiceTooSmall      = "invoice_too_small"
	unappliedFromInvoice = "unapplied_from_invoice"
)

type NewBalanceTransaction struct {
	Customer    string
	Amount      *int64
	Currency    string
	Description string
	Metadata    map[string]string
}

// CreateBalanceTransaction adjusts a customer's balance.
func (a *Account) CreateBalanceTransaction(env Env, p NewBalanceTransaction) (*BalanceTransaction, error) {
	customer, err := a.customer(p.Customer)
	if err != nil {
		return nil, NotFound("customer", p.Customer)
	}
	if err := checkCurrency(p.Currency); err != nil {
		return nil, err
	}
	switch {
	case p.Amount == nil:
		return nil, missingParam("amount")
	case *p.Amount == 0 || *p.Amount < -maxAmount || *p.Amount > maxAmount:
		return nil, invalid("amount", "Amount must not be 0 and be between %d and %d.", -maxAmount, maxAmount).withCode("parameter_invalid_integer")
	case customer.Currency != "" && customer.Currency != p.Currency:
		return nil, errMixed(customer.Currency)
	}
	var metadata map[string]string
	if err := mergeMetadata(&metadata, p.Metadata); err != nil {
		return nil, err
	}
	was := a.Render(customer)
	customer.Currency = p.Currency
	transaction := a.moveBalance(env, customer, adjustment, *p.Amount, nil)
	transaction.Description, transaction.Metadata = p.Description, metadata
	a.emitChange(env, "customer.updated", was, customer)
	return transaction, nil
}

// moveBalance changes a balance and records the transaction.
func (a *Account) moveBalance(env Env, customer *Customer, kind string, amount int64, invoice *Invoice) *BalanceTransaction {
	customer.Balance += amount
	transaction := &BalanceTransaction{
		Head: a.newHead(env, "cbtxn_"), Customer: customer.ID, Type: kind, Amount: amount, EndingBalance: customer.Balance, Currency: customer.Currency,
	}
	if invoice != nil {
		transaction.Invoice, transaction.Currency = invoice.ID, invoice.Currency
	}
	a.BalanceTransactions.Put(transaction)
	return transaction
}

// applyBalance applies the customer's balance to a finalized invoice, and carries the
// rest to the next invoice.
func (a *Account) applyBalance(env Env, invoice *Invoice) {
	moved := invoice.EndingBalance - invoice.StartingBalance
	if moved == 0 {
		return
	}
	kind := appliedToInvoice
	if invoice.StartingBalance >= 0 && moved > 0 {
		kind = invoiceTooSmall
	}
	a.moveBalance(env, a.Customers.Get(invoice.Customer), kind, moved, invoice)
}

// unapplyBalance reverts what a voided invoice applied from the customer's balance.
func (a *Account) unapplyBalance(env Env, invoice *Invoice) {
	moved := invoice.StartingBalance - invoice.EndingBalance
	if invoice.FinalizedAt == 0 || moved == 0 {
		return
	}
	a.moveBalance(env, a.Customers.Get(invoice.Customer), unappliedFromInvoice, moved, invoice)
}

func (t *BalanceTransaction) render(a *Account) Doc {
	return t.doc("customer_balance_transaction").with(Doc{
		"amount": t.Amount, "credit_note": nil, "currency": t.Currency, "customer": t.Customer, "description": null(t.Description),
		"ending_balance": t.EndingBalance, "invoice": null(t.Invoice), "metadata": metadataDoc(t.Metadata), "type": t.Type,
	})
}
