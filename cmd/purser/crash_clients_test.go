package main_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const (
	users      = 12 // clients that use wallets
	payers     = 2  // clients that pay into them
	wallets    = 5
	firstMoney = 1_000_000_000
	usePrice   = 7
)

// clients send one thing after the other, each until it is answered.
type clients struct {
	t       *testing.T
	address func() string // of the server for the next request
	secret  string
	http    *http.Client
	acks    atomic.Int64
	acksBy  sync.Map // an *atomic.Int64 for each address
	stopped atomic.Bool
	done    sync.WaitGroup
	journal [users + payers][]*intent
}

// intent is what a client is about to send, and what became of it.
type intent struct {
	path, id, identity string
	body               map[string]any

	open  bool // it may have been done: an answer was lost, or told nothing
	lost  int  // answers
	acked bool
	txn   string
	spent int64 // what the wallet lost by it; a deposit's is negative
}

func newClients(t *testing.T, p *program) *clients {
	t.Helper()
	c := &clients{t: t, address: p.address, secret: p.createKey(t), http: &http.Client{Timeout: backWithin}}
	c.must("/v1/credits", map[string]any{"key": "tokens", "name": "Tokens", "unit": "token"})
	c.must("/v1/features", map[string]any{
		"key": "message", "name": "Messages", "unit": "message", "creditKey": "tokens", "costNanocredits": strconv.Itoa(usePrice),
		"quantityPerUnit": 1, "pricingMode": "fixed", "deduplicationPeriod": "none",
	})
	for w := range wallets {
		c.must("/v1/deposits", deposit(identityOf(w), firstMoney, identityOf(w)))
	}
	return c
}

func identityOf(n int) string { return "wallet-" + strconv.Itoa(n%wallets) }

func deposit(identity string, amount int, key string) map[string]any {
	return map[string]any{"identity": identity, "creditKey": "tokens", "amountNanocredits": strconv.Itoa(amount), "idempotencyKey": key}
}

// begin lets them loose.
func (c *clients) begin() {
	for n := range c.journal {
		c.done.Go(func() {
			for i := 0; !c.stopped.Load(); i++ {
				c.journal[n] = append(c.journal[n], c.nextIntent(n, i)) // before it is sent
				c.settle(c.journal[n][i])
			}
		})
	}
}

func (c *clients) nextIntent(client, i int) *intent {
	identity := identityOf(client + i)
	id := fmt.Sprintf("client %d, number %d", client, i)
	if client >= users {
		return &intent{path: "/v1/deposits", id: id, identity: identity, body: deposit(identity, 1+i%5, id)}
	}
	return &intent{path: "/v1/events", id: id, identity: identity, body: map[string]any{
		"id": id, "identity": identity, "feature": "message", "quantity": 1 + i%3,
	}}
}

// end waits until each has its last answer.
func (c *clients) end() {
	c.stopped.Store(true)
	c.done.Wait()
}

// awaitAcks waits for so many more.
func (c *clients) awaitAcks(t *testing.T, n int64) {
	t.Helper()
	until := c.acks.Load() + n
	await(t, "answers", func() bool { return c.acks.Load() >= until })
}

// awaitAcksBy waits for a number of further acknowledgements of one server.
func (c *clients) awaitAcksBy(t *testing.T, address string, n int64) {
	t.Helper()
	until := c.answered(address).Load() + n
	await(t, "answers of "+address, func() bool { return c.answered(address).Load() >= until })
}

func (c *clients) answered(address string) *atomic.Int64 {
	count, _ := c.acksBy.LoadOrStore(address, new(atomic.Int64))
	return count.(*atomic.Int64)
}

// settle sends an intent until the answer is definite.
func (c *clients) settle(in *intent) {
	deadline := time.Now().Add(2 * backWithin)
	for !in.acked && time.Now().Before(deadline) {
		status, r, err := c.post(in.path, in.body)
		switch {
		case err != nil || status >= 500:
			in.open = true
			in.lost++
			<-time.After(5 * time.Millisecond) // it is down: asking faster brings nothing
		case status == http.StatusTooManyRequests: // nothing was done, by promise
		case status == http.StatusOK || status == http.StatusCreated:
			c.acknowledge(in, r)
		default:
			c.t.Errorf("%s: %d %+v", in.id, status, r)
			return
		}
	}
	if !in.acked {
		c.t.Errorf("%s: no answer for %s", in.id, 2*backWithin)
	}
}

// acknowledge writes an answer down.
func (c *clients) acknowledge(in *intent, r reply) {
	in.acked, in.txn = true, r.TransactionID
	in.spent = parseAmount(r.AmountNanocredits)
	repeated := r.Status == "duplicate"
	if in.path == "/v1/deposits" {
		in.txn, repeated = r.Deposit.ID, r.Duplicate
		in.spent = -parseAmount(r.Deposit.AmountNanocredits)
	}
	if in.txn == "" || in.spent == 0 {
		c.t.Errorf("%s: an empty answer: %+v", in.id, r)
	}
	if repeated && !in.open {
		c.t.Errorf("%s was done although every answer before said that it was not", in.id)
	}
	c.acks.Add(1)
}

// reply is what the answers to uses, deposits and errors say.
type reply struct {
	Error, Message                           string
	Status, TransactionID, AmountNanocredits string
	Duplicate                                bool
	Deposit                                  struct{ ID, AmountNanocredits string }
}

// parseAmount gives zero, which nothing here is, for what is no number.
func parseAmount(text string) int64 {
	amount, _ := strconv.ParseInt(text, 10, 64)
	return amount
}

// compare holds the books against the journals: everything that was acknowledged
// is there under the same transaction and for the same amount, and the balances
// are what is left when each was done once.
func (c *clients) compare(t *testing.T) (lost int) {
	t.Helper()
	left := make(map[string]int64)
	for w := range wallets {
		left[identityOf(w)] = firstMoney
	}
	sent := 0
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, journal := range c.journal {
		all.Go(func() {
			for _, in := range journal {
				again := *in
				again.acked, again.open = false, true
				c.settle(&again)
				if again.txn != in.txn || again.spent != in.spent {
					t.Errorf("%s was acknowledged as %s for %d, and is now %s for %d", in.id, in.txn, in.spent, again.txn, again.spent)
				}
				mu.Lock()
				left[in.identity] -= in.spent
				sent++
				lost += in.lost
				mu.Unlock()
			}
		})
	}
	all.Wait()
	t.Logf("%d acknowledged, %d answers lost on the way", sent, lost)
	for identity, want := range left {
		if got := c.balance(identity); got != want {
			t.Errorf("%s holds %d, not %d", identity, got, want)
		}
	}
	return lost
}

func (c *clients) balance(identity string) int64 {
	var wallet struct {
		Balances []struct{ AmountNanocredits string }
	}
	text, status, err := c.do(http.MethodGet, "/v1/wallets/"+identity, nil)
	if err == nil {
		err = json.Unmarshal(text, &wallet)
	}
	if err != nil || status != http.StatusOK || len(wallet.Balances) != 1 {
		c.t.Fatalf("wallet %s: %d %s %v", identity, status, text, err)
	}
	return parseAmount(wallet.Balances[0].AmountNanocredits)
}

// must sends what has to work at once.
func (c *clients) must(path string, body map[string]any) {
	c.t.Helper()
	if status, r, err := c.post(path, body); err != nil || status != http.StatusCreated {
		c.t.Fatalf("%s: %d %+v %v", path, status, r, err)
	}
}

func (c *clients) post(path string, body map[string]any) (status int, r reply, err error) {
	text, err := json.Marshal(body)
	if err != nil {
		return 0, r, err
	}
	text, status, err = c.do(http.MethodPost, path, text)
	if err == nil && json.Unmarshal(text, &r) != nil {
		err = errors.New("half an answer")
	}
	return status, r, err
}

func (c *clients) do(method, path string, body []byte) (text []byte, status int, err error) {
	address := c.address()
	request, err := http.NewRequest(method, address+path, bytes.NewReader(body))
	if err != nil {
		return nil, 0, err
	}
	request.Header.Set("Authorization", "Bearer "+c.secret)
	request.Header.Set("Content-Type", "application/json")
	response, err := c.http.Do(request)
	if err != nil {
		return nil, 0, err
	}
	defer response.Body.Close()
	text, err = io.ReadAll(response.Body)
	if err == nil && response.StatusCode < 300 {
		c.answered(address).Add(1)
	}
	return text, response.StatusCode, err
}
