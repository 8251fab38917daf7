package engine

import (
	"fmt"

	"github.com/go-json-experiment/json"
)

// Snapshot returns the account as one document. The whole account must be in memory.
func (a *Account) Snapshot() ([]byte, error) {
	s := snapshot{
		Version: documentVersion, Offset: a.Offset, Made: a.Made, Held: a.Held, Endpoints: a.Endpoints,
		Products: a.Products.all(), Prices: a.Prices.all(), Customers: a.Customers.all(), Methods: a.Methods.all(), Sessions: a.Sessions.all(),
		Challenges: a.Challenges.all(), Subscriptions: a.Subscriptions.all(), Schedules: a.Schedules.all(), Invoices: a.Invoices.all(),
		Intents: a.Intents.all(), Charges: a.Charges.all(), Refunds: a.Refunds.all(), Disputes: a.Disputes.all(), Portals: a.Portals.all(),
		BalanceTransactions: a.BalanceTransactions.all(),
		Configurations:      a.Configurations.all(), TestClocks: a.TestClocks.all(), Events: a.Events.all(), Answers: a.Answers.all(),
		Queue: a.Deliveries.Loaded(),
	}
	for _, timer := range a.window.sorted {
		s.Timers = append(s.Timers, &timer)
	}
	document, err := json.Marshal(&s, json.OmitZeroStructFields(true), json.Deterministic(true))
	if err != nil {
		return nil, fmt.Errorf("sandbox: encode account document: %w", err)
	}
	return document, nil
}

// Export reads the whole account and returns it as one document.
func (a *Account) Export() (document []byte, err error) {
	err = Guard(func() error {
		if a.source != nil {
			rows, err := a.source.Everything()
			panicOnReadError(err)
			a.addRows(rows)
			a.window.all(a)
		}
		document, err = a.Snapshot()
		return err
	})
	return document, err
}

// all adds every loaded timer.
func (n *timerWindow) all(a *Account) {
	n.sorted, n.more = nil, false
	for _, timer := range a.timers.Loaded() {
		n.insert(*timer)
	}
}

func (t *Table[O]) all() map[string]*O {
	all := map[string]*O{}
	for id, known := range t.slots {
		if known.o != nil {
			all[id] = known.o
		}
	}
	return all
}
