package billing

import (
	"reflect"
	"testing"

	"purser/metering"
)

func TestTopUp(t *testing.T) {
	changes := TopUp{
		ID: named("topup"), Identity: "ada", Credit: tokens(500), AmountCents: 1000, Currency: "usd",
		CustomerID: "cus_1", SessionID: "cs_1", Status: TopUpOpen,
	}
	page := ProviderSession{
		ID: "cs_1", Status: SessionOpen, AmountTotal: 1000, Currency: "usd", CustomerID: "cus_1",
		IntentID: "pi_1", ChargeID: "ch_1", URL: "https://pay.example/cs_1", ExpiresAt: day,
	}
	remote := func(changes ...func(*ProviderSession)) ProviderSession {
		s := page
		for _, change := range changes {
			change(&s)
		}
		return s
	}
	complete := func(s *ProviderSession) { s.Status = SessionComplete }
	expired := func(s *ProviderSession) { s.Status = SessionExpired }
	paid := func(s *ProviderSession) { s.Paid = true }

	for _, c := range []struct {
		claim    string
		said     ProviderSession
		want     TopUpStatus
		credited metering.Amount
		alerts   int
	}{
		{"an open page brings nothing", remote(), TopUpOpen, 0, 0},
		{"a paid one is credited", remote(complete, paid), TopUpPaid, 500, 0},
		{"a bank debit is on its way", remote(complete), TopUpProcessing, 0, 0},
		{"a bank debit that fails brings nothing", remote(complete, func(s *ProviderSession) { s.Failed = true }), TopUpFailed, 0, 0},
		{"an expired page brings nothing", remote(expired), TopUpExpired, 0, 0},
		{"one that was paid at the second of its expiry is credited", remote(expired, paid), TopUpPaid, 500, 0},
		{"another amount is set aside", remote(complete, paid, func(s *ProviderSession) { s.AmountTotal = 999 }), TopUpSetAside, 0, 1},
		{"another currency is set aside", remote(complete, paid, func(s *ProviderSession) { s.Currency = "eur" }), TopUpSetAside, 0, 1},
		{"another customer is set aside", remote(complete, paid, func(s *ProviderSession) { s.CustomerID = "cus_2" }), TopUpSetAside, 0, 1},
		{"real money for a test is set aside", remote(complete, paid, func(s *ProviderSession) { s.Live = true }), TopUpSetAside, 0, 1},
		{"another page is set aside", remote(complete, paid, func(s *ProviderSession) { s.ID = "cs_2" }), TopUpSetAside, 0, 1},
		{"another amount that was not paid is no matter", remote(complete, func(s *ProviderSession) { s.AmountTotal = 1 }), TopUpProcessing, 0, 0},
	} {
		t.Run(c.claim, func(t *testing.T) {
			next, settled, alerts := changes.ApplySession(c.said)
			if next.Status != c.want || total(settled) != c.credited || len(alerts) != c.alerts {
				t.Fatalf("got %s, %+v, %+v", next.Status, settled, alerts)
			}
			if again, twice, more := next.ApplySession(c.said); !reflect.DeepEqual(again, next) || len(twice) != 0 || len(more) != 0 {
				t.Errorf("said again: %+v, %+v, %+v", again, twice, more)
			}
		})
	}
	t.Run("a second page that is paid too brings nothing more and is for a person", func(t *testing.T) {
		credited, _, _ := changes.ApplySession(remote(complete, paid))
		next, settled, alerts := credited.ApplySession(remote(complete, paid, func(s *ProviderSession) { s.ID = "cs_2" }))
		if !reflect.DeepEqual(next, credited) || len(settled) != 0 || !reflect.DeepEqual(alerts, []Alert{{AmountMismatch, "cs_2"}}) {
			t.Errorf("got %+v, %+v, %+v", next, settled, alerts)
		}
		if _, _, alerts = credited.ApplySession(remote(complete, func(s *ProviderSession) { s.ID = "cs_2" })); len(alerts) != 0 {
			t.Errorf("not paid, and still: %+v", alerts)
		}
	})
	t.Run("is settled under its session, as a top-up", func(t *testing.T) {
		_, settled, _ := changes.ApplySession(remote(complete, paid))
		p := settled[0]
		if p.Source != (Source{Session, "cs_1"}) || p.EntryKind() != metering.EntryTopUp || p.AmountCents != 1000 || p.ChargeID != "ch_1" {
			t.Errorf("got %+v", p)
		}
	})
	t.Run("stays credited when an older word arrives", func(t *testing.T) {
		done, _, _ := changes.ApplySession(remote(complete, paid))
		if after, settled, _ := done.ApplySession(remote()); after.Status != TopUpPaid || len(settled) != 0 {
			t.Errorf("got %s, %+v", after.Status, settled)
		}
	})
	t.Run("learns of its page from the provider when the answer was lost", func(t *testing.T) {
		lost := changes
		lost.SessionID = ""
		if next, settled, _ := lost.ApplySession(remote(complete, paid)); next.SessionID != "cs_1" || total(settled) != 500 {
			t.Errorf("got %+v, %+v", next, settled)
		}
	})
}
