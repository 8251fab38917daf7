package sandbox_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"purser/ids"
	"purser/payments/sandbox/persist"
	"purser/payments/sandbox/sandboxtest"
)

// cost is what requests ask of the storage.
type cost struct {
	finds, sessions, statements, rows, bytes int
}

// meter counts what goes through sandbox.Accounts.
type meter struct {
	sandboxtest.Memory
	spent  cost
	admits atomic.Int64
}

func (m *meter) Update(ctx context.Context, app ids.ID, want persist.Want, change func(persist.Session) (persist.Change, error)) error {
	m.spent.sessions++
	return m.Memory.Update(ctx, app, want, func(s persist.Session) (persist.Change, error) {
		next, err := change(m.metered(s))
		m.count(next.Rows, nil)
		m.spent.rows += len(next.Deleted)
		return next, err
	})
}

func (m *meter) View(ctx context.Context, app ids.ID, want persist.Want, read func(persist.Session) error) error {
	m.spent.sessions++
	return m.Memory.View(ctx, app, want, func(s persist.Session) error { return read(m.metered(s)) })
}

func (m *meter) Find(ctx context.Context, app ids.ID, kind, name string, byAlias bool) (string, bool, error) {
	m.spent.finds++
	return m.Memory.Find(ctx, app, kind, name, byAlias)
}

func (m *meter) metered(s persist.Session) persist.Session {
	m.count(s.Rows, nil)
	m.count(s.Timers, nil)
	m.spent.bytes += len(s.Head)
	s.Source = meteredSource{s.Source, m}
	return s
}

func (m *meter) count(rows []persist.Row, err error) ([]persist.Row, error) {
	m.spent.rows += len(rows)
	for _, row := range rows {
		m.spent.bytes += len(row.Document)
	}
	return rows, err
}

type meteredSource struct {
	persist.Source
	m *meter
}

func (s meteredSource) statement(rows []persist.Row, err error) ([]persist.Row, error) {
	s.m.spent.statements++
	return s.m.count(rows, err)
}

func (s meteredSource) Load(keys []string) ([]persist.Row, error) {
	return s.statement(s.Source.Load(keys))
}

func (s meteredSource) Lookup(kind string, index persist.Index, values []string) ([]persist.Row, error) {
	return s.statement(s.Source.Lookup(kind, index, values))
}

func (s meteredSource) Page(p persist.Page) ([]persist.Row, error) {
	return s.statement(s.Source.Page(p))
}

func (s meteredSource) Earliest(kind string, due, nth int64, limit int) ([]persist.Row, error) {
	return s.statement(s.Source.Earliest(kind, due, nth, limit))
}

func (s meteredSource) Ready(kind string, due int64, limit int) ([]persist.Row, error) {
	return s.statement(s.Source.Ready(kind, due, limit))
}

func (s meteredSource) FirstDue(kind string, except []string) (int64, bool, error) {
	s.m.spent.statements++
	return s.Source.FirstDue(kind, except)
}

// copyCheckouts adds copies of a checkout.
func copyCheckouts(t *testing.T, r *harness, checkout string, copies int) {
	t.Helper()
	c := r.stored()
	nth := 1_000_000
	for _, row := range slices.Clone(c.Rows) {
		isTimer := row.Kind == "timer" && bytes.Contains(row.Document, []byte(checkout))
		for i := range copies {
			id := fmt.Sprintf("cs_test_%058d", i)
			switch {
			case row.Key == "session/"+checkout:
				c.Rows = append(c.Rows, copied(t, row, id, int64(nth+2*i), "ID"))
			case isTimer:
				c.Rows = append(c.Rows, copied(t, row, strconv.Itoa(nth+2*i+1), int64(nth+2*i+1), ""))
				last := &c.Rows[len(c.Rows)-1]
				last.Document = bytes.Replace(last.Document, []byte(checkout), []byte(id), 1)
			}
		}
	}
	r.restore(c)
}

// copied is a row under another id, which may be a field of its document, and number.
func copied(t *testing.T, row persist.Row, id string, nth int64, field string) persist.Row {
	t.Helper()
	var document map[string]any
	must(t, json.Unmarshal(row.Document, &document))
	document["Nth"] = nth
	if field != "" {
		document[field] = id
	}
	row.Key, row.Nth, row.Document = persist.Key(row.Kind, id), nth, ok[[]byte](t)(json.Marshal(document))
	return row
}

// restore replaces the account, and numbers new objects from a number on that has as many
// digits whatever the account holds.
func (r *harness) restore(c persist.Change) {
	r.Helper()
	var head map[string]any
	must(r, json.Unmarshal(c.Head, &head))
	head["Made"] = 5_000_000
	c.Head = ok[[]byte](r.T)(json.Marshal(head))
	must(r, sandboxtest.Write(r.Context(), r.accounts, r.app, c))
}

func TestACheckoutCostsTheSameAfterTwoThousandOthers(t *testing.T) {
	t.Parallel()
	spend := func(earlier int) (map[string]cost, string) {
		m := &meter{}
		r := startWith(t, "2026-03-10", m)
		price, customer := r.price(2900), r.customer()
		// Left open, so that the same timers come next.
		open := r.checkout(customer, price)
		r.checkout(customer, price)
		r.checkout(customer, price)
		r.events()
		copyCheckouts(t, r, open.ID, earlier)

		spent := map[string]cost{}
		measure := func(name string, do func()) {
			m.spent = cost{}
			do()
			spent[name] = m.spent
		}
		var url string
		measure("opening it", func() { url = r.checkout(customer, price).URL })
		measure("its page", func() { r.visit(url) })
		measure("paying", func() { r.pay(url, cardPays) })
		measure("its webhooks", func() { r.events() })
		measure("a page that does not exist", func() { r.visit(url + "x") })
		return spent, url
	}
	few, _ := spend(0)
	many, _ := spend(2_000)
	for name, cost := range few {
		if many[name] != cost {
			t.Errorf("%s costs %+v, and after 2,000 checkouts %+v", name, cost, many[name])
		}
	}
	if paid := few["paying"]; paid.rows == 0 || paid.bytes == 0 {
		t.Errorf("nothing was measured: %+v", paid)
	}
}

func TestAnUnknownPageCostsOneRead(t *testing.T) {
	t.Parallel()
	m := &meter{}
	r := startWith(t, "2026-03-10", m)
	r.topup(500)
	for _, page := range []string{"checkout", "authenticate", "invoice", "portal"} {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			m.spent = cost{}
			m.admits.Store(0)
			address := r.site() + "/" + page + "/" + strings.Repeat("a", 40)
			status := 0
			if method == http.MethodGet {
				status, _ = r.visit(address)
			} else {
				status, _, _ = r.submit(address, url.Values{"card": {"4242424242424242"}})
			}
			if status != http.StatusNotFound || m.spent != (cost{finds: 1}) || m.admits.Load() != 0 {
				t.Errorf("%s of an unknown %s page answers %d and costs %+v and %d other reads", method, page, status, m.spent, m.admits.Load())
			}
		}
	}
	t.Run("and one that cannot exist costs none", func(t *testing.T) {
		for _, token := range []string{strings.Repeat("a", 200), "%00", "%ff"} {
			m.spent = cost{}
			if status, _ := r.visit(r.site() + "/invoice/" + token); status != http.StatusNotFound || m.spent != (cost{}) {
				t.Errorf("%.10s answers %d and costs %+v", token, status, m.spent)
			}
		}
	})
}

func TestPagesPastTheLimitAreRefusedAtOnce(t *testing.T) {
	t.Parallel()
	r := start(t)
	session := r.topup(500)
	entered, leave := make(chan struct{}), make(chan struct{})
	r.onSeller = func() {
		entered <- struct{}{}
		<-leave
	}
	answers := make(chan int)
	const limit = 16
	for range limit {
		go func() {
			status, _ := r.visit(session.URL)
			answers <- status
		}()
	}
	for range limit {
		<-entered
	}
	if status, body := r.visit(session.URL); status != http.StatusServiceUnavailable || !strings.Contains(body, "Try again") {
		t.Errorf("one more answers %d: %s", status, body)
	}
	close(leave)
	for range limit {
		if status := <-answers; status != http.StatusOK {
			t.Errorf("a page within the limit answers %d", status)
		}
	}
	r.onSeller = nil
	if status, _ := r.visit(session.URL); status != http.StatusOK {
		t.Errorf("afterwards a page answers %d", status)
	}
}
