package billing

import (
	"encoding/json"
	"maps"
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

// The texts are what release 0.1.0 has stored. Its operations continue in this one.
func TestParametersOfAnEarlierReleaseAreRead(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		kind   OperationKind
		stored string
		want   Parameters
	}{
		"an upgrade": {OperationChange, `{"act": "upgrade", "plan": "pro", "price": "price_2", "sessions": "", "subscription": "sub_1"}`,
			Parameters{Change: &ChangeParameters{Command: CommandUpgrade, PlanKey: "pro", PriceID: "price_2", SubscriptionID: "sub_1"}}},
		"an upgrade to the same terms": {OperationChange, `{"act": "upgrade", "plan": "pro", "price": "price_2", "stays": "true", "sessions": "cs_1 cs_2", "subscription": "sub_1"}`,
			Parameters{Change: &ChangeParameters{
				Command: CommandUpgrade, PlanKey: "pro", PriceID: "price_2", SubscriptionID: "sub_1", SameTerms: true, Sessions: SessionIDs{"cs_1", "cs_2"},
			}}},
		"a replacement": {OperationChange, `{"act": "replace", "plan": "pro", "price": "price_2", "sessions": "", "expires": "1731700000000", "subscription": ""}`,
			Parameters{Change: &ChangeParameters{Command: CommandReplace, PlanKey: "pro", PriceID: "price_2", ExpiresAt: 1731700000000}}},
		"a change of a free subscription": {OperationChange, `{"act": "local", "then": "queue", "plan": "gift", "price": "", "sessions": "cs_1"}`,
			Parameters{Change: &ChangeParameters{Command: CommandLocal, Local: LocalSchedule, PlanKey: "gift", Sessions: SessionIDs{"cs_1"}}}},
		"a cancellation": {OperationCancel, `{"act": "flag", "flag": "true", "void": "true", "renewal": "in_1", "sessions": "", "subscription": "sub_1"}`,
			Parameters{Cancel: &CancelParameters{Command: CommandCancel, SubscriptionID: "sub_1", CancelAtPeriodEnd: true, VoidPending: true, RenewalID: "in_1"}}},
		"a cancellation that is undone": {OperationCancel, `{"act": "flag", "flag": "false", "subscription": "sub_1"}`,
			Parameters{Cancel: &CancelParameters{Command: CommandCancel, SubscriptionID: "sub_1"}}},
		"a checkout": {OperationCheckout, `{"act": "checkout", "plan": "pro", "price": "price_2", "free": "false", "success": "https://a/b", "cancel": "https://a/c", "expires": "5", "sessions": ""}`,
			Parameters{Checkout: &CheckoutParameters{
				Command: CommandCheckout, PlanKey: "pro", PriceID: "price_2", SuccessURL: "https://a/b", CancelURL: "https://a/c", ExpiresAt: 5,
			}}},
		"a checkout of a free plan": {OperationCheckout, `{"act": "checkout", "plan": "gift", "price": "price_3", "free": "true", "expires": "5"}`,
			Parameters{Checkout: &CheckoutParameters{Command: CommandCheckout, PlanKey: "gift", PriceID: "price_3", Free: true, ExpiresAt: 5}}},
		"a top-up": {OperationTopUp, `{"act": "topup", "cents": "3000", "currency": "usd", "name": "30 Tokens", "success": "https://a/b", "cancel": "https://a/c", "expires": "5"}`,
			Parameters{TopUp: &TopUpParameters{
				Command: CommandTopUp, AmountCents: 3000, Currency: "usd", Name: "30 Tokens", SuccessURL: "https://a/b", CancelURL: "https://a/c", ExpiresAt: 5,
			}}},
		"an action": {OperationAction, `{"action": "cancel_now", "object": "sub_2"}`,
			Parameters{Action: &ActionParameters{Kind: CancelNow, ObjectID: "sub_2"}}},
		"a change that needed no call": {OperationChange, `{}`, Parameters{Change: &ChangeParameters{}}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := DecodeParameters(c.kind, []byte(c.stored))
			if err != nil {
				t.Fatal(err)
			}
			if len(got.Sessions()) == 0 { // nil and empty are the same
				got, c.want = withoutSessions(got), withoutSessions(c.want)
			}
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %+v, want %+v", got.set(), c.want.set())
			}
			// That release reads what this one writes: the same keys and values, where a key
			// that is missing means the same as an empty or false one.
			if back := texts(t, got); !maps.Equal(back, texts(t, Parameters{}, c.stored)) {
				t.Errorf("stored again: %v, before: %s", back, c.stored)
			}
		})
	}
	for _, broken := range []string{``, `[]`, `{"expires": "soon"}`} {
		if _, err := DecodeParameters(OperationTopUp, []byte(broken)); err == nil {
			t.Errorf("%q was read", broken)
		}
	}
	if _, err := DecodeParameters("refund", []byte(`{}`)); err == nil {
		t.Error("an unknown kind was read")
	}
}

func withoutSessions(p Parameters) Parameters {
	switch {
	case p.Change != nil:
		p.Change.Sessions = nil
	case p.Cancel != nil:
		p.Cancel.Sessions = nil
	case p.Checkout != nil:
		p.Checkout.Sessions = nil
	}
	return p
}

// texts are the stored values, or those of a text, without the empty and false ones.
func texts(t *testing.T, p Parameters, stored ...string) map[string]string {
	t.Helper()
	encoded, err := p.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if len(stored) > 0 {
		encoded = []byte(stored[0])
	}
	values := map[string]string{}
	if err := json.Unmarshal(encoded, &values); err != nil {
		t.Fatal(err)
	}
	maps.DeleteFunc(values, func(_, value string) bool { return value == "" || value == "false" })
	return values
}

func TestParametersAreReadAsTheyWereStored(t *testing.T) {
	t.Parallel()
	text, number := rapid.String(), rapid.Int64()
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom([]OperationKind{OperationChange, OperationCancel, OperationCheckout, OperationTopUp, OperationAction}).Draw(t, "kind")
		p := NewParameters(kind)
		sessions := SessionIDs(rapid.SliceOfN(rapid.StringMatching(`cs_[a-z0-9]{1,8}`), 1, 3).Draw(t, "sessions"))
		flag := rapid.Bool().Draw(t, "flag")
		switch {
		case p.Change != nil:
			*p.Change = ChangeParameters{
				Command: CommandReplace, SubscriptionID: text.Draw(t, "id"), PlanKey: text.Draw(t, "plan"), PriceID: text.Draw(t, "price"), SameTerms: flag,
				VoidsPriceID: text.Draw(t, "voids"), Local: LocalKeep, Sessions: sessions, ExpiresAt: number.Draw(t, "expires"),
			}
		case p.Cancel != nil:
			*p.Cancel = CancelParameters{Command: CommandCancel, SubscriptionID: text.Draw(t, "id"), CancelAtPeriodEnd: flag, VoidPending: !flag, RenewalID: text.Draw(t, "renewal"), Local: LocalCancel, Sessions: sessions}
		case p.Checkout != nil:
			*p.Checkout = CheckoutParameters{
				Command: CommandCheckout, PlanKey: text.Draw(t, "plan"), PriceID: text.Draw(t, "price"), Free: flag, Sessions: sessions,
				SuccessURL: text.Draw(t, "success"), CancelURL: text.Draw(t, "cancel"), ExpiresAt: number.Draw(t, "expires"),
			}
		case p.TopUp != nil:
			*p.TopUp = TopUpParameters{
				Command: CommandTopUp, AmountCents: number.Draw(t, "cents"), Currency: text.Draw(t, "currency"), Name: text.Draw(t, "name"),
				SuccessURL: text.Draw(t, "success"), CancelURL: text.Draw(t, "cancel"), ExpiresAt: number.Draw(t, "expires"),
			}
		case p.Action != nil:
			*p.Action = ActionParameters{Kind: VoidRenewal, ObjectID: text.Draw(t, "object")}
		}
		stored, err := p.Encode()
		if err != nil {
			t.Fatal(err)
		}
		got, err := DecodeParameters(kind, stored)
		if err != nil || !reflect.DeepEqual(got, p) {
			t.Fatalf("%s is read as %+v: %v", stored, got.set(), err)
		}
	})
}
