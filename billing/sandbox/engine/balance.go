package engine

// BalanceTransaction is one movement of a customer's balance. Below zero is a credit:
// it lowers what the next invoice asks for.
type BalanceTransaction struct {
	Head
	Customer      string
	Type          string
	Amount        int64
	EndingBalance int64
	Currency      string
	Invoice       string // that it was applied to, or came back from
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

// NewBalanceTransaction is what a caller adjusts a balance with.
type NewBalanceTransaction struct {
	Customer    string
	Amount      *int64
	Currency    string
	Description string
	Metadata    map[string]string
}

// CreateBalanceTransaction adjusts a customer's balance.
func (w *Account) CreateBalanceTransaction(m Clock, p NewBalanceTransaction) (*BalanceTransaction, error) {
	customer, err := w.customer(p.Customer)
	if err != nil {
		return nil, NotFound("customer", p.Customer)
	}
	if err := checkCurrency(p.Currency); err != nil {
		return nil, err
	}
	switch {
	case p.Amount == nil:
		return nil, absent("amount")
	case *p.Amount == 0 || *p.Amount < -maxAmount || *p.Amount > maxAmount:
		return nil, invalid("amount", "Amount must not be 0 and be between %d and %d.", -maxAmount, maxAmount).withCode("parameter_invalid_integer")
	case customer.Currency != "" && customer.Currency != p.Currency:
		return nil, errMixed(customer.Currency)
	}
	var metadata map[string]string
	if err := merge(&metadata, p.Metadata); err != nil {
		return nil, err
	}
	was := w.Render(customer)
	customer.Currency = p.Currency
	transaction := w.moveBalance(m, customer, adjustment, *p.Amount, nil)
	transaction.Description, transaction.Metadata = p.Description, metadata
	w.emitChange(m, "customer.updated", was, customer)
	return transaction, nil
}

// moveBalance changes a balance and records why.
func (w *Account) moveBalance(m Clock, customer *Customer, kind string, amount int64, invoice *Invoice) *BalanceTransaction {
	customer.Balance += amount
	transaction := &BalanceTransaction{
		Head: w.newHead(m, "cbtxn_"), Customer: customer.ID, Type: kind, Amount: amount, EndingBalance: customer.Balance, Currency: customer.Currency,
	}
	if invoice != nil {
		transaction.Invoice, transaction.Currency = invoice.ID, invoice.Currency
	}
	w.BalanceTransactions.Put(transaction)
	return transaction
}

// applyBalance moves what a finalised invoice takes from the customer's balance, or
// carries to the next invoice.
func (w *Account) applyBalance(m Clock, invoice *Invoice) {
	moved := invoice.EndingBalance - invoice.StartingBalance
	if moved == 0 {
		return
	}
	kind := appliedToInvoice
	if invoice.StartingBalance >= 0 && moved > 0 {
		kind = invoiceTooSmall
	}
	w.moveBalance(m, w.Customers.Get(invoice.Customer), kind, moved, invoice)
}

// unapplyBalance gives back to the balance what a voided invoice had taken from it.
func (w *Account) unapplyBalance(m Clock, invoice *Invoice) {
	moved := invoice.StartingBalance - invoice.EndingBalance
	if invoice.FinalizedAt == 0 || moved == 0 {
		return
	}
	w.moveBalance(m, w.Customers.Get(invoice.Customer), unappliedFromInvoice, moved, invoice)
}

func (w *Account) renderBalanceTransaction(t *BalanceTransaction) Doc {
	return t.doc("customer_balance_transaction").with(Doc{
		"amount": t.Amount, "credit_note": nil, "currency": t.Currency, "customer": t.Customer, "description": null(t.Description),
		"ending_balance": t.EndingBalance, "invoice": null(t.Invoice), "metadata": pairs(t.Metadata), "type": t.Type,
	})
}
