package billing

import (
	"math"
	"math/big"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"purser/metering"
)

// taken is what a payment's movements have taken back of a credit, all in all.
type taken map[string]metering.Amount

func (k taken) follow(t rapid.TB, movements []Movement) {
	for _, m := range movements {
		if m.Delta.Amount == 0 {
			t.Fatalf("a movement of nothing: %+v", m)
		}
		if m.Delta.Out {
			k[m.CreditKey] += m.Delta.Amount
			continue
		}
		if m.Delta.Amount > k[m.CreditKey] {
			t.Fatalf("%+v gives back more than was taken", m)
		}
		k[m.CreditKey] -= m.Delta.Amount
	}
}

func refund(id string, cents int64, status string) ProviderRefund {
	return ProviderRefund{id, cents, status}
}

func TestClawback(t *testing.T) {
	ended := func(status string, movements int) []ProviderDispute {
		return []ProviderDispute{{"dp_1", 3000, status, movements}}
	}
	for _, c := range []struct {
		claim  string
		paid   int64
		charge ProviderCharge
		want   metering.Amount // of 1001
	}{
		{"nothing is taken for nothing", 3000, ProviderCharge{}, 0},
		{"all is taken for all", 3000, ProviderCharge{Refunds: []ProviderRefund{refund("a", 3000, "succeeded")}}, 1001},
		{"two partial refunds are one share", 3000, ProviderCharge{Refunds: []ProviderRefund{refund("a", 1000, "succeeded"), refund("b", 500, "succeeded")}}, 500},
		{"a refund on its way counts", 3000, ProviderCharge{Refunds: []ProviderRefund{refund("a", 1000, "pending")}}, 333},
		{"a failed refund does not", 3000, ProviderCharge{Refunds: []ProviderRefund{refund("a", 1000, "failed")}}, 0},
		{"a cancelled refund does not", 3000, ProviderCharge{Refunds: []ProviderRefund{refund("a", 1000, "canceled")}}, 0},
		{"an inquiry takes nothing", 3000, ProviderCharge{Disputes: ended("warning_needs_response", 0)}, 0},
		{"a dispute takes what was withdrawn", 3000, ProviderCharge{Disputes: ended("needs_response", 1)}, 1001},
		{"a dispute under review takes it still", 3000, ProviderCharge{Disputes: ended("under_review", 1)}, 1001},
		{"a won dispute gives it back", 3000, ProviderCharge{Disputes: ended("won", 2)}, 0},
		{"a won dispute gives it back before the money has moved", 3000, ProviderCharge{Disputes: ended("won", 1)}, 0},
		{"reinstated money gives it back before the dispute is closed", 3000, ProviderCharge{Disputes: ended("under_review", 2)}, 0},
		{"a lost dispute keeps it", 3000, ProviderCharge{Disputes: ended("lost", 1)}, 1001},
		{"a lost dispute for which no money ever moved takes nothing", 3000, ProviderCharge{Disputes: ended("lost", 0)}, 0},
		{"a closed inquiry takes nothing", 3000, ProviderCharge{Disputes: ended("warning_closed", 0)}, 0},
		{"refund and dispute together take no more than all", 3000, ProviderCharge{Refunds: []ProviderRefund{refund("a", 2000, "succeeded")}, Disputes: ended("lost", 1)}, 1001},
		{"won, then refunded, is the refund", 3000, ProviderCharge{Refunds: []ProviderRefund{refund("a", 1500, "succeeded")}, Disputes: ended("won", 2)}, 500},
		{"nothing is taken when nothing was paid", 0, ProviderCharge{Refunds: []ProviderRefund{refund("a", 10, "succeeded")}}, 0},
	} {
		t.Run(c.claim, func(t *testing.T) {
			p := Payment{AmountCents: c.paid, Credits: []Grant{tokens(1001)}}
			next, movements := p.Reverse(c.charge.Reversed())
			got := taken{}
			got.follow(t, movements)
			if got["tokens"] != c.want {
				t.Errorf("%d were taken, want %d", got["tokens"], c.want)
			}
			if _, again := next.Reverse(c.charge.Reversed()); len(again) != 0 {
				t.Errorf("said again: %+v", again)
			}
		})
	}
	t.Run("takes nothing of what the customer's balance has paid", func(t *testing.T) {
		p := Payment{AmountCents: 50, BalanceCents: 2950, ChargeID: "ch_1", Credits: []Grant{tokens(3000)}}
		all, err := p.DecideRefund()
		if err != nil || all.AmountCents != 50 {
			t.Fatalf("got %+v, %v", all, err)
		}
		got := taken{}
		if got.follow(t, all.TakenBack); got["tokens"] != 50 {
			t.Errorf("%d were taken, want 50", got["tokens"])
		}
	})
	t.Run("takes of each credit in proportion", func(t *testing.T) {
		p := Payment{AmountCents: 300, Credits: []Grant{tokens(900), {named("minutes"), "minutes", 10}}}
		_, movements := p.Reverse(Reversal{RefundedCents: 100})
		got := taken{}
		if got.follow(t, movements); got["tokens"] != 300 || got["minutes"] != 3 {
			t.Errorf("got %v", got)
		}
	})
	t.Run("says whether a refund or a dispute was the reason", func(t *testing.T) {
		p := Payment{AmountCents: 300, Credits: []Grant{tokens(900)}}
		disputed, movements := p.Reverse(Reversal{DisputedCents: 300})
		if movements[0].Kind != metering.EntryDispute {
			t.Errorf("got %+v", movements)
		}
		won, movements := disputed.Reverse(Reversal{})
		if movements[0].Kind != metering.EntryDispute || movements[0].Delta.Out {
			t.Errorf("got %+v", movements)
		}
		if _, movements = won.Reverse(Reversal{RefundedCents: 1}); movements[0].Kind != metering.EntryRefund {
			t.Errorf("got %+v", movements)
		}
	})
	t.Run("a refund and a dispute in one report have an entry each", func(t *testing.T) {
		p := Payment{AmountCents: 300, Credits: []Grant{tokens(900)}}
		next, movements := p.Reverse(Reversal{RefundedCents: 100, DisputedCents: 100})
		want := []Movement{
			{named("tokens"), "tokens", metering.EntryRefund, metering.Delta{Amount: 300, Out: true}, 300},
			{named("tokens"), "tokens", metering.EntryDispute, metering.Delta{Amount: 300, Out: true}, 600},
		}
		if !slices.Equal(movements, want) {
			t.Errorf("got %+v", movements)
		}
		next.RefundedCents = 0 // the refund was reported alone before
		if _, movements := next.Reverse(Reversal{RefundedCents: 300}); movements[len(movements)-1].Kind != metering.EntryRefund {
			t.Errorf("got %+v", movements)
		}
	})
	t.Run("what a won dispute gives again comes before what a refund takes", func(t *testing.T) {
		p := Payment{AmountCents: 300, DisputedCents: 100, Credits: []Grant{tokens(900)}, TakenBack: []Grant{tokens(300)}}
		_, movements := p.Reverse(Reversal{RefundedCents: 200})
		want := []Movement{
			{named("tokens"), "tokens", metering.EntryDispute, metering.Delta{Amount: 300}, 0},
			{named("tokens"), "tokens", metering.EntryRefund, metering.Delta{Amount: 600, Out: true}, 600},
		}
		if !slices.Equal(movements, want) {
			t.Errorf("got %+v", movements)
		}
		if got := movements[1].From(100); got != (metering.Delta{Amount: 500, Out: true}) {
			t.Errorf("with 100 still taken, the refund takes %+v", got)
		}
	})
	t.Run("is exact at the largest numbers", func(t *testing.T) {
		p := Payment{AmountCents: math.MaxInt64, Credits: []Grant{tokens(metering.MaxAmount)}}
		for refunded, want := range map[int64]metering.Amount{
			math.MaxInt64:     metering.MaxAmount,
			math.MaxInt64 - 1: metering.MaxAmount - 2,
			1:                 1,
		} {
			_, movements := p.Reverse(Reversal{RefundedCents: refunded, DisputedCents: 0})
			if movements[0].Delta.Amount != want {
				t.Errorf("%d: got %d, want %d", refunded, movements[0].Delta.Amount, want)
			}
		}
		if _, movements := p.Reverse(Reversal{math.MaxInt64, math.MaxInt64}); movements[0].Delta.Amount != metering.MaxAmount {
			t.Errorf("got %+v", movements)
		}
	})
}

// Whatever was reported on the way, and however often: once the whole of it was
// reported, the same is taken, and never more than came in.
func TestClawbackConverges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := Payment{AmountCents: rapid.Int64Range(0, 1_000_000).Draw(t, "paid")}
		for _, key := range []string{"tokens", "minutes"} {
			amount := metering.Amount(rapid.Uint64Range(0, uint64(metering.MaxAmount)).Draw(t, key))
			p.Credits = append(p.Credits, Grant{named(key), key, amount})
		}
		cents := rapid.Int64Range(0, 1_000_000)
		var whole ProviderCharge
		for range rapid.IntRange(0, 4).Draw(t, "refunds") {
			status := rapid.SampledFrom([]string{"pending", "succeeded", "failed", "canceled"}).Draw(t, "status")
			whole.Refunds = append(whole.Refunds, ProviderRefund{AmountCents: cents.Draw(t, "refund"), Status: status})
		}
		for range rapid.IntRange(0, 2).Draw(t, "disputes") {
			status := rapid.SampledFrom([]string{"warning_closed", "needs_response", "won", "lost"}).Draw(t, "status")
			whole.Disputes = append(whole.Disputes, ProviderDispute{AmountCents: cents.Draw(t, "dispute"), Status: status, Movements: rapid.IntRange(0, 2).Draw(t, "movements")})
		}

		got := taken{}
		apply := func(c ProviderCharge) {
			var movements []Movement
			p, movements = p.Reverse(c.Reversed())
			got.follow(t, movements)
			for _, credited := range p.Credits {
				if got[credited.CreditKey] > credited.Amount {
					t.Fatalf("%d of %d %s were taken", got[credited.CreditKey], credited.Amount, credited.CreditKey)
				}
			}
		}
		for range rapid.IntRange(0, 5).Draw(t, "on the way") {
			apply(ProviderCharge{
				Refunds:  whole.Refunds[:rapid.IntRange(0, len(whole.Refunds)).Draw(t, "some refunds")],
				Disputes: whole.Disputes[:rapid.IntRange(0, len(whole.Disputes)).Draw(t, "some disputes")],
			})
		}
		apply(whole)
		apply(whole)
		for _, credited := range p.Credits {
			if want := shareByBook(credited.Amount, whole.Reversed(), p.AmountCents); got[credited.CreditKey] != want {
				t.Fatalf("%d %s were taken, want %d", got[credited.CreditKey], credited.CreditKey, want)
			}
		}
	})
}

// shareByBook is the rule as it is written, with numbers of any size.
func shareByBook(amount metering.Amount, r Reversal, paid int64) metering.Amount {
	if paid == 0 {
		return 0
	}
	product := new(big.Int).Mul(new(big.Int).SetUint64(uint64(amount)), big.NewInt(min(paid, r.RefundedCents+r.DisputedCents)))
	return metering.Amount(product.Div(product, big.NewInt(paid)).Uint64())
}

func TestFailedRefundsOfACharge(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		charge ProviderCharge
		want   bool
	}{
		"nothing":               {},
		"a part was refunded":   {charge: ProviderCharge{Refunds: []ProviderRefund{{AmountCents: 3, Status: "succeeded"}, {AmountCents: 2, Status: "pending"}}}},
		"a refund failed":       {charge: ProviderCharge{Refunds: []ProviderRefund{{AmountCents: 3, Status: "succeeded"}, {AmountCents: 7, Status: "failed"}}}, want: true},
		"a refund was canceled": {charge: ProviderCharge{Refunds: []ProviderRefund{{AmountCents: 10, Status: "canceled"}}}, want: true},
		"a dispute is open":     {charge: ProviderCharge{Disputes: []ProviderDispute{{AmountCents: 10, Status: "needs_response", Movements: 1}}}},
		"a dispute was won":     {charge: ProviderCharge{Disputes: []ProviderDispute{{AmountCents: 10, Status: "won", Movements: 2}}}, want: true},
	} {
		if got := c.charge.HasFailedRefund(); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
