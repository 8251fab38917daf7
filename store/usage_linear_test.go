package store_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"purser/ids"
	"purser/metering"
	"purser/store/storetest"
)

const (
	linearClients = 8
	linearOps     = 80 // of each client
	// Few ids, so that most are sent more than once.
	linearEvents   = 200
	linearDeposits = 60
)

// TestWalletIsLinearizable records what eight clients on two nodes do with one
// wallet and are told, and looks for an order in which one at a time would have
// been told the same. An operation without an answer may have happened at any time
// after it was sent, or never.
func TestWalletIsLinearizable(t *testing.T) {
	t.Parallel()
	const calm, broken = 8, 4 // histories at once, each of a wallet of its own
	seed := storetest.Seed(t)
	url := storetest.URL(t)

	t.Run("on two nodes", func(t *testing.T) {
		t.Parallel()
		s := newShop(t, url, 2)
		linearHistories(t, s, seed, calm)
		soundBooks(t, url, s.tenant)
	})

	t.Run("while connections break", func(t *testing.T) {
		t.Parallel()
		s, proxy := newProxiedShop(t, url, 2)
		random := rand.New(rand.NewPCG(seed, 1))
		proxy.Plan(func(int) commitFault {
			if random.IntN(10) > 0 {
				return noFault
			}
			return []commitFault{beforeCommit, afterCommit, midRow}[random.IntN(3)]
		})
		linearHistories(t, s, seed, broken)
		if proxy.Struck(afterCommit) == 0 {
			t.Error("no reply was lost")
		}
		soundBooks(t, url, s.tenant)
	})
}

// linearHistories runs and judges so many at once, each on a wallet of its own.
func linearHistories(t *testing.T, s shop, seed uint64, histories int) {
	t.Helper()
	remote := make(map[string]int)
	var mu sync.Mutex
	atOnce(histories, func(i int) {
		r := newRecorder(s, numbered("wallet", i))
		r.run(t, seed+uint64(i))
		if result := porcupine.CheckOperationsTimeout(r.model(), r.history, 5*time.Minute); result != porcupine.Ok {
			t.Errorf("history %d: %s", i, result)
		}
		mu.Lock()
		defer mu.Unlock()
		for _, op := range r.history {
			remote[op.Input.(linearInput).kind+" "+op.Output.(linearOutput).said]++
		}
	})
	t.Logf("answers: %v", remote)
}

// linearInput is one operation. Its number stands for the transaction or the
// deposit that it would make.
type linearInput struct {
	kind   string // use, check, deposit or read
	number int32
	slot   int // which event id, or which idempotency key
	amount int64
}

// linearOutput is what the client received.
type linearOutput struct {
	said    string // a verdict or a code; nothing when there was no answer
	by      int32  // the operation whose transaction or deposit was named
	amount  int64
	balance int64
}

// linearState is the whole wallet. It is compared by ==.
type linearState struct {
	balance  int64
	events   [linearEvents]int32 // the operation that was accepted, or 0
	deposits [linearDeposits]int32
}

// recorder lets clients loose on a wallet and writes down what happens.
type recorder struct {
	shop
	identity string
	started  time.Time

	mu      sync.Mutex
	numbers map[ids.ID]int32 // of transactions and deposits
	amounts []int64          // by number
	history []porcupine.Operation
}

func newRecorder(s shop, identity string) *recorder {
	return &recorder{shop: s, identity: identity, started: time.Now(), numbers: make(map[ids.ID]int32), amounts: make([]int64, 1)}
}

func (r *recorder) run(t *testing.T, seed uint64) {
	t.Helper()
	r.credit(t, r.identity, 0)
	atOnce(linearClients, func(client int) {
		random := rand.New(rand.NewPCG(seed, uint64(client)))
		for range linearOps {
			r.record(client, r.draw(random), r.nodes[random.IntN(len(r.nodes))], t)
		}
	})
}

func (r *recorder) draw(random *rand.Rand) linearInput {
	in := linearInput{kind: "use", slot: random.IntN(linearEvents), amount: int64(messagePrice) * (1 + random.Int64N(3))}
	switch n := random.IntN(20); {
	case n < 2:
		in = linearInput{kind: "deposit", slot: random.IntN(linearDeposits), amount: 10 * (1 + random.Int64N(9))}
	case n < 6:
		in.kind = "check"
	case n < 9:
		in.kind = "read"
	}
	return in
}

func (r *recorder) record(client int, in linearInput, n node, t *testing.T) {
	id := ids.New()
	r.mu.Lock()
	in.number = int32(len(r.amounts))
	r.amounts = append(r.amounts, in.amount)
	r.numbers[id] = in.number
	r.mu.Unlock()
	called := time.Since(r.started).Nanoseconds()
	out := r.do(t, in, id, n)
	returned := time.Since(r.started).Nanoseconds()
	if out.said == "" {
		if in.kind == "check" || in.kind == "read" {
			return // nothing was told, and nothing can have happened
		}
		returned = math.MaxInt64
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.history = append(r.history, porcupine.Operation{ClientId: client, Input: in, Call: called, Output: out, Return: returned})
}

// do sends the operation and gives what the client is told.
func (r *recorder) do(t *testing.T, in linearInput, id ids.ID, n node) (out linearOutput) {
	use := r.message(r.identity, fmt.Sprint(r.identity, " event ", in.slot))
	use.TransactionID, use.Quantity = id, in.amount/int64(messagePrice)
	switch in.kind {
	case "use":
		d, err := n.usage.Track(use)
		if err == nil {
			out = linearOutput{said: answer(d, nil), by: r.numberOf(d.Event.TransactionID), amount: int64(d.Event.Charge.Amount)}
		}
	case "check":
		use.EventID, use.TransactionID = "", ids.ID{}
		d, err := n.usage.Check(use)
		if err == nil {
			out = linearOutput{said: answer(d, nil), balance: int64(d.Before.Amount)}
		}
	case "deposit":
		requested := depositOf(r.identity, "tokens", metering.Amount(in.amount), fmt.Sprint(r.identity, " deposit ", in.slot))
		requested.ID = id
		made, duplicate, err := r.on(n).Deposit(t.Context(), requested)
		if err == nil {
			out = linearOutput{said: map[bool]string{false: "made", true: "duplicate"}[duplicate], by: r.numberOf(made.ID), amount: int64(made.Amount)}
		}
	case "read":
		w, err := r.on(n).Wallet(t.Context(), r.identity)
		if err == nil {
			out = linearOutput{said: "read", balance: int64(w.Balances[0].Amount)}
		}
	}
	return out
}

func (r *recorder) numberOf(id ids.ID) int32 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.numbers[id]
}

// model is the wallet with one client at a time.
func (r *recorder) model() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return linearState{} },
		Step: func(state, input, output any) (bool, any) {
			s, want := r.step(state.(linearState), input.(linearInput))
			told := output.(linearOutput)
			return told.said == "" || told == want, s
		},
	}
}

// step does one operation, and says what its client is told.
func (r *recorder) step(s linearState, in linearInput) (linearState, linearOutput) {
	first := func(by int32) linearOutput {
		return linearOutput{said: "duplicate", by: by, amount: r.amounts[by]}
	}
	switch in.kind {
	case "use":
		if by := s.events[in.slot]; by != 0 {
			return s, first(by)
		}
		if in.amount > s.balance {
			return s, linearOutput{said: "insufficient_balance", by: in.number, amount: in.amount}
		}
		s.balance -= in.amount
		s.events[in.slot] = in.number
		return s, linearOutput{said: "accepted", by: in.number, amount: in.amount}
	case "check":
		remote := "accepted"
		if in.amount > s.balance {
			remote = "insufficient_balance"
		}
		return s, linearOutput{said: remote, balance: s.balance}
	case "deposit":
		if by := s.deposits[in.slot]; by != 0 {
			return s, first(by)
		}
		s.balance += in.amount
		s.deposits[in.slot] = in.number
		return s, linearOutput{said: "made", by: in.number, amount: in.amount}
	default:
		return s, linearOutput{said: "read", balance: s.balance}
	}
}

// A check that cannot fail proves nothing: each history here is one that a bug
// would leave.
func TestLinearModelSeesWhatIsWrong(t *testing.T) {
	t.Parallel()
	r := &recorder{amounts: []int64{0, 10, 10, 10}}
	deposit := linearInput{kind: "deposit", number: 1, amount: 10}
	use := linearInput{kind: "use", number: 2, amount: 10}
	again := linearInput{kind: "use", number: 3, amount: 10}
	read := linearInput{kind: "read"}
	made := linearOutput{said: "made", by: 1, amount: 10}
	op := func(in linearInput, out linearOutput, call, back int64) porcupine.Operation {
		return porcupine.Operation{Input: in, Output: out, Call: call, Return: back}
	}
	for name, history := range map[string][]porcupine.Operation{
		"a lost deposit": {op(deposit, made, 1, 2), op(read, linearOutput{said: "read"}, 3, 4)},
		"two charges for one event": {op(deposit, made, 1, 2),
			op(use, linearOutput{said: "accepted", by: 2, amount: 10}, 3, 6), op(again, linearOutput{said: "accepted", by: 3, amount: 10}, 4, 5)},
		"another transaction for a repeat": {op(deposit, made, 1, 2),
			op(use, linearOutput{said: "accepted", by: 2, amount: 10}, 3, 4), op(again, linearOutput{said: "duplicate", by: 3, amount: 10}, 5, 6)},
		"a refusal with money in the wallet": {op(deposit, made, 1, 2), op(use, linearOutput{said: "insufficient_balance", by: 2, amount: 10}, 3, 4)},
		"a charge that a later read does not see": {op(deposit, made, 1, 2),
			op(use, linearOutput{said: "accepted", by: 2, amount: 10}, 3, 4), op(read, linearOutput{said: "read", balance: 10}, 5, 6)},
	} {
		if porcupine.CheckOperations(r.model(), history) {
			t.Errorf("%s went unnoticed", name)
		}
	}
	for _, balance := range []int64{10, 0} { // without an answer it may have happened or not
		history := []porcupine.Operation{op(deposit, made, 1, 2), op(use, linearOutput{}, 3, math.MaxInt64), op(read, linearOutput{said: "read", balance: balance}, 5, 6)}
		if !porcupine.CheckOperations(r.model(), history) {
			t.Errorf("an operation without an answer cannot leave %d", balance)
		}
	}
}
