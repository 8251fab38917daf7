package golang

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

// TestMinimalBodiesHaveOnlyWhatIsRequired writes the smallest bodies of the document.
func TestMinimalBodiesHaveOnlyWhatIsRequired(t *testing.T) {
	t.Parallel()
	for fields, body := range map[string]any{
		"key name unit": NewCredit{Key: "tokens", Name: "Tokens", Unit: "token"},
		"costNanocredits creditKey key name unit": NewFeature{Key: "chat", Name: "Chat", Unit: "message", CreditKey: "tokens", CostNanocredits: "1"},
		"amountCents currency featureLimits interval key name": NewPlan{
			Key: "pro", Name: "Pro", AmountCents: 2900, Currency: "eur", Interval: "month", FeatureLimits: FeatureLimits{{FeatureKey: "chat", Limit: 10}},
		},
		"featureKey limit":       FeatureLimit{FeatureKey: "chat", Limit: 10},
		"name":                   CreditPatch{Name: new(Name("Tokens"))},
		"feature identity":       UsageCheck{Identity: "ann", Feature: "chat"},
		"feature id identity":    UsageEvent{Id: "1", Identity: "ann", Feature: "chat"},
		"idempotencyKey planKey": SubscriptionChange{PlanKey: "pro", IdempotencyKey: "1"},
		"cancelUrl idempotencyKey identity planKey successUrl": NewSubscriptionCheckout{
			Identity: "ann", PlanKey: "pro", SuccessUrl: "https://shop.test/thanks?session={CHECKOUT_SESSION_ID}", CancelUrl: "https://shop.test/", IdempotencyKey: "1",
		},
		"amountNanocredits creditKey idempotencyKey identity": NewDeposit{Identity: "ann", CreditKey: "tokens", AmountNanocredits: "1", IdempotencyKey: "1"},
	} {
		text, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		var object map[string]any
		if err := json.Unmarshal(text, &object); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(slices.Sorted(maps.Keys(object)), " "); got != fields {
			t.Errorf("%T has %s, want %s", body, got, fields)
		}
	}
}

func TestNoSubscriptionIsNil(t *testing.T) {
	t.Parallel()
	const subscription = `{"id":"sub_1","identity":"ann","planKey":"pro","status":"active","periodStart":1,"periodEnd":2,"cancelAtPeriodEnd":false,"featureLimits":[]}`
	answers := map[string]string{"/v1/subscriptions/ann": subscription, "/v1/subscriptions/bob": "null"}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, answers[r.URL.Path])
	}))
	defer server.Close()
	client, err := NewClientWithResponses(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	for identity, want := range map[string]string{"ann": "pro", "bob": ""} {
		got, err := client.GetSubscriptionWithResponse(t.Context(), identity)
		if err != nil || got.JSON200 == nil {
			t.Fatalf("%s: %v", identity, err)
		}
		if one := *got.JSON200; (one == nil) != (want == "") || one != nil && one.PlanKey != want {
			t.Errorf("%s has %+v", identity, one)
		}
	}
}

func TestErrorCodesArePartOfTheClient(t *testing.T) {
	t.Parallel()
	if !ErrorCodeInsufficientBalance.Valid() || ErrorCode("nonsense").Valid() {
		t.Error("codes are not distinguished")
	}
}
