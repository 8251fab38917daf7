package stripe_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"purser/billing"
	"purser/payments/sandbox"
	"purser/payments/stripe"
)

func TestCatalog(t *testing.T) {
	r := start(t)
	_, err := r.Product(t.Context(), "prod")
	r.wantProblem(err, stripe.NotFound)
	_, err = r.PriceByReference(t.Context(), "ref:prod")
	r.wantProblem(err, stripe.NotFound)
	made := r.price("prod", 500)
	found, err := r.PriceByReference(t.Context(), "ref:prod")
	r.check(err)
	if found != made || found.AmountCents != 500 || found.Interval != billing.Month || found.ProductID != "prod" || !found.Active {
		t.Errorf("made %+v, found %+v", made, found)
	}
	r.check(r.UpdateProduct(t.Context(), "update", stripe.Product{ID: "prod", Name: "Other", Active: false}))
	product, err := r.Product(t.Context(), "prod")
	r.check(err)
	if product != (stripe.Product{ID: "prod", Name: "Other"}) {
		t.Errorf("the product is %+v", product)
	}
	r.check(r.SetPriceActive(t.Context(), "archive", made.ID, false))
}

func TestSubscription(t *testing.T) {
	r := start(t)
	basic, pro := r.price("basic", 1000), r.price("pro", 2900)
	s := r.subscribe(basic, cardPays)
	if s.Status != billing.ProviderActive || s.PriceID != basic.ID || s.ItemID == "" || s.Metadata["checkout"] != "chk_1" || len(s.Invoices) != 1 {
		t.Errorf("the subscription is %+v", s)
	}
	invoice := s.Invoices[0]
	if invoice.Status != billing.InvoicePaid || invoice.Reason != billing.ReasonCreate || invoice.AmountPaid != 1000 || invoice.ChargeID == "" ||
		len(invoice.Lines) != 1 || invoice.Lines[0].PriceID != basic.ID || invoice.Lines[0].Period != s.Period || !invoice.Lines[0].Subscription {
		t.Errorf("the invoice is %+v", invoice)
	}

	t.Run("is put under a schedule and released from it", func(t *testing.T) {
		schedule, err := r.CreateSchedule(t.Context(), "schedule", s.ID)
		r.check(err)
		r.check(r.SetPhases(t.Context(), "phases", schedule, pro.ID))
		under, err := r.Subscription(t.Context(), s.ID)
		r.check(err)
		if under.ScheduleID != schedule || under.Next == nil || under.Next.PriceID != pro.ID || under.Next.At != s.Period.End {
			t.Errorf("the subscription is under %q, next %+v", under.ScheduleID, under.Next)
		}
		of, err := r.ScheduledSubscription(t.Context(), schedule)
		r.check(err)
		if of != s.ID {
			t.Errorf("the schedule is about %s", of)
		}
		r.check(r.ReleaseSchedule(t.Context(), "release", schedule))
		// Scenario 32: what was released already counts as done.
		r.check(r.ReleaseSchedule(t.Context(), "release again", schedule))
		free, err := r.Subscription(t.Context(), s.ID)
		r.check(err)
		if free.ScheduleID != "" || free.Next != nil {
			t.Errorf("the subscription is still under %q", free.ScheduleID)
		}
	})
	t.Run("is upgraded", func(t *testing.T) {
		r.check(r.Upgrade(t.Context(), "upgrade", s, pro.ID))
		after, err := r.Subscription(t.Context(), s.ID)
		r.check(err)
		if after.PriceID != pro.ID || after.Pending != nil || len(after.Invoices) != 2 {
			t.Errorf("the subscription is %+v", after)
		}
	})
	t.Run("ends with its period, or not, or now", func(t *testing.T) {
		r.check(r.SetCancel(t.Context(), "cancel", s, true))
		ends, err := r.Subscription(t.Context(), s.ID)
		r.check(err)
		r.check(r.SetCancel(t.Context(), "go on", ends, false))
		goesOn, err := r.Subscription(t.Context(), s.ID)
		r.check(err)
		if !ends.CancelAtPeriodEnd || goesOn.CancelAtPeriodEnd || goesOn.CancelAt != 0 {
			t.Errorf("%v, then %v", ends.CancelAtPeriodEnd, goesOn.CancelAtPeriodEnd)
		}
		r.check(r.CancelNow(t.Context(), "now", s.ID))
		over, err := r.Subscription(t.Context(), s.ID)
		r.check(err)
		if !over.Status.Terminal() || over.EndedAt == 0 {
			t.Errorf("it is %s, since %d", over.Status, over.EndedAt)
		}
	})
	t.Run("its charge is refunded", func(t *testing.T) {
		r.check(r.RefundCharge(t.Context(), "refund", invoice.ChargeID))
		charge, err := r.Charge(t.Context(), invoice.ChargeID)
		r.check(err)
		if charge.Reversed() != (billing.Reversal{RefundedCents: 1000}) || charge.IntentID != invoice.IntentID {
			t.Errorf("the charge is %+v", charge)
		}
		var found []string
		refunds := func(after string) (last string) {
			r.check(r.Refunds(t.Context(), time.Now().Add(-time.Hour).UnixMilli(), after, func(l stripe.Listed) error {
				found, last = append(found, l.ObjectID), l.ID
				return nil
			}))
			return last
		}
		last := refunds("")
		if !slices.Equal(found, []string{invoice.ChargeID}) {
			t.Errorf("refunded charges %v", found)
		}
		if refunds(last); len(found) != 1 {
			t.Errorf("behind the last there are %v", found[1:])
		}
	})
}

func TestProblems(t *testing.T) {
	create := func(ctx context.Context, r *harness, key string) error {
		_, err := r.CreateCustomer(ctx, key, map[string]string{"a": key})
		return err
	}
	for name, c := range map[string]struct {
		fault sandbox.Fault
		kind  stripe.Kind
		saved bool
		tries int
	}{
		"a failure of its own":    {sandbox.Fault{Kind: sandbox.Fail}, stripe.Unavailable, true, 3},
		"too many requests":       {sandbox.Fault{Kind: sandbox.Limit}, stripe.Unavailable, false, 1},
		"a lock, again and again": {sandbox.Fault{Kind: sandbox.Conflict, Times: 3}, stripe.Unavailable, false, 3},
		"a declined card":         {sandbox.Fault{Kind: sandbox.Decline}, stripe.Declined, true, 1},
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t)
			r.inject(c.fault)
			err := create(t.Context(), r, "key")
			r.wantProblem(err, c.kind)
			if problem, current := err.(*stripe.Problem); !current || problem.Saved != c.saved || problem.Message == "" {
				t.Errorf("the problem is %#v", err)
			}
			if len(r.keys) != c.tries || slices.ContainsFunc(r.keys, func(k string) bool { return k != "key" }) {
				t.Errorf("it was sent under the keys %v", r.keys)
			}
		})
	}
	for name, c := range map[string]struct {
		status   int
		body     string
		definite bool
	}{
		"a limit":                           {http.StatusTooManyRequests, `{"error": {"message": "Too many requests."}}`, true},
		"a lock":                            {http.StatusConflict, `{"error": {"code": "lock_timeout", "message": "Locked."}}`, true},
		"the same request, still under way": {http.StatusConflict, `{"error": {"type": "idempotency_error", "code": "idempotency_key_in_use", "message": "In use."}}`, false},
		"a failure":                         {http.StatusInternalServerError, `{"error": {"type": "api_error", "message": "Failed."}}`, false},
	} {
		t.Run("what is done is known after "+name, func(t *testing.T) {
			t.Parallel()
			err := stripe.New(stripe.Access{Key: "sk_test_1", Transport: answers{c.status, c.body}}).Upgrade(t.Context(), "key", stripe.Subscription{}, "price_1")
			if problem, ok := errors.AsType[*stripe.Problem](err); !ok || problem.Kind != stripe.Unavailable || problem.Definite != c.definite || problem.Saved {
				t.Errorf("the problem is %#v", err)
			}
		})
	}
	limit := answers{http.StatusTooManyRequests, `{"error": {"message": "Too many requests."}}`}
	for name, first := range map[string]func(*http.Request) (*http.Response, error){
		"no answer": func(*http.Request) (*http.Response, error) { return nil, io.ErrUnexpectedEOF },
		"a failure": answers{http.StatusBadGateway, "Bad gateway"}.RoundTrip,
		"a cut answer": func(req *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(iotest.ErrReader(io.ErrUnexpectedEOF)), Request: req}, nil
		},
	} {
		t.Run("a limit after "+name+" says nothing of the first try", func(t *testing.T) {
			t.Parallel()
			way := &inTurn{first, limit.RoundTrip}
			err := stripe.New(stripe.Access{Key: "sk_test_1", Transport: way}).Upgrade(t.Context(), "key", stripe.Subscription{}, "price_1")
			if problem, ok := errors.AsType[*stripe.Problem](err); !ok || problem.Definite || len(*way) != 0 {
				t.Errorf("the problem is %#v, %d answers are left", err, len(*way))
			}
		})
	}
	t.Run("a limit says nothing of the first try when the transport sent it again", func(t *testing.T) {
		t.Parallel()
		var posted atomic.Int32
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.Method == http.MethodGet: // leaves a connection to reuse
				_, _ = io.WriteString(w, "{}")
			case posted.Add(1) == 1:
				panic(http.ErrAbortHandler)
			default:
				w.WriteHeader(http.StatusTooManyRequests)
				_, _ = io.WriteString(w, limit.body)
			}
		}))
		t.Cleanup(server.Close)
		client := stripe.New(stripe.Access{Key: "sk_test_1", SandboxURL: server.URL, Transport: &http.Transport{}})
		if _, err := client.Account(t.Context()); err != nil {
			t.Fatal(err)
		}
		err := client.Upgrade(t.Context(), "key", stripe.Subscription{}, "price_1")
		if problem, ok := errors.AsType[*stripe.Problem](err); !ok || problem.Definite || posted.Load() != 2 {
			t.Errorf("the problem is %#v after %d tries", err, posted.Load())
		}
	})
	t.Run("a lost answer is asked for again under the same key", func(t *testing.T) {
		r := start(t)
		r.inject(sandbox.Fault{Kind: sandbox.DropAfter})
		r.check(create(t.Context(), r, "key"))
		if len(r.keys) < 2 || slices.ContainsFunc(r.keys, func(k string) bool { return k != "key" }) {
			t.Errorf("it was sent under the keys %v", r.keys)
		}
	})
	t.Run("one key for two requests is our mistake", func(t *testing.T) {
		r := start(t)
		_, err := r.CreateCustomer(t.Context(), "key", map[string]string{"a": "1"})
		r.check(err)
		_, err = r.CreateCustomer(t.Context(), "key", map[string]string{"a": "2"})
		r.wantProblem(err, stripe.KeyMisused)
	})
	t.Run("an unknown key", func(t *testing.T) {
		r := start(t)
		_, err := stripe.New(stripe.Access{Key: "sk_test_nobody", SandboxURL: r.sandbox.StripeURL()}).Account(t.Context())
		r.wantProblem(err, stripe.Unauthorized)
	})
	t.Run("nothing to charge", func(t *testing.T) {
		r := start(t)
		free, pro := r.price("free", 0), r.price("pro", 2900)
		customer, err := r.CreateCustomer(t.Context(), "customer", nil)
		r.check(err)
		page, err := r.CreateSubscriptionSession(t.Context(), "session", stripe.SessionOrder{
			CustomerID: customer, Reference: "chk_1", SuccessURL: "http://shop.test/yes", CancelURL: "http://shop.test/no",
			ExpiresAt: time.Now().Add(time.Hour).UnixMilli(), PriceID: free.ID, Free: true,
		})
		r.check(err)
		r.start(page.URL)
		said, err := r.SessionByReference(t.Context(), customer, "chk_1")
		r.check(err)
		s, err := r.Subscription(t.Context(), said.SubscriptionID)
		r.check(err)
		r.wantProblem(r.Upgrade(t.Context(), "upgrade", s, pro.ID), stripe.NoPaymentMethod)
	})
	t.Run("no answer in the caller's time", func(t *testing.T) {
		r := start(t)
		r.hangs.Store(true)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		r.wantProblem(create(ctx, r, "key"), stripe.Unavailable)
	})
}

type recorder struct{ hosts []string }

func (r *recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	r.hosts = append(r.hosts, req.URL.Host)
	return &http.Response{StatusCode: http.StatusFound, Header: http.Header{"Location": {"http://elsewhere.test/"}}, Body: http.NoBody, Request: req}, nil
}

func TestNothingGoesElsewhere(t *testing.T) {
	t.Parallel()
	to := &recorder{}
	if _, err := stripe.New(stripe.Access{Key: "sk_test_x", Transport: to}).Account(t.Context()); err == nil {
		t.Error("a way to another place was taken for an answer")
	}
	if len(to.hosts) == 0 || slices.ContainsFunc(to.hosts, func(h string) bool { return h != "api.stripe.com" }) {
		t.Errorf("requests went to %v", to.hosts)
	}
}

func TestVerify(t *testing.T) {
	t.Parallel()
	if _, err := stripe.Verify([]byte("{}"), "t=1,v1=00", nil, time.Unix(1, 0)); err == nil {
		t.Error("without a secret anything is taken")
	}
	if _, err := stripe.Verify([]byte("{}"), strings.Repeat("t=1,", 1000), []string{""}, time.Unix(1, 0)); err == nil {
		t.Error("an empty secret is one")
	}
}

// answers is a provider that answers everything with the same.
type answers struct {
	status int
	body   string
}

func (a answers) RoundTrip(req *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: a.status, Header: http.Header{"Content-Type": {"application/json"}, "Stripe-Should-Retry": {"false"}}, Body: io.NopCloser(strings.NewReader(a.body)), Request: req}, nil
}

// inTurn is a provider that gives each answer once.
type inTurn []func(*http.Request) (*http.Response, error)

func (p *inTurn) RoundTrip(req *http.Request) (*http.Response, error) {
	answer := (*p)[0]
	*p = (*p)[1:]
	return answer(req)
}

// recording answers like answers, and keeps the form that was posted.
type recording struct {
	answers
	form *url.Values
}

func (r recording) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method == http.MethodPost {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		if *r.form, err = url.ParseQuery(string(body)); err != nil {
			return nil, err
		}
	}
	return r.answers.RoundTrip(req)
}

// The trial and the payment method were set at Stripe.
func TestTheRunningPhaseIsSentAgainAsItIs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		phase string
		trial string
		card  string
	}{
		"in a trial":              {`"trial_end": 1900, "default_payment_method": "pm_1"`, "1900", "pm_1"},
		"in a trial to its end":   {`"trial_end": 2000, "default_payment_method": null`, "2000", ""},
		"after a trial":           {`"trial_end": 1000, "default_payment_method": null`, "", ""},
		"without either of these": {`"trial_end": null, "default_payment_method": null`, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			schedule := `{"id": "sub_sched_1", "object": "subscription_schedule", "current_phase": {"start_date": 1000, "end_date": 2000},
				"phases": [{"start_date": 1000, "end_date": 2000, "items": [{"price": "price_1", "quantity": 1}], ` + c.phase + `}]}`
			var sent url.Values
			client := stripe.New(stripe.Access{Key: "sk_test_1", Transport: recording{answers{http.StatusOK, schedule}, &sent}})
			if err := client.SetPhases(t.Context(), "key", "sub_sched_1", "price_2"); err != nil {
				t.Fatal(err)
			}
			if sent.Get("phases[0][trial_end]") != c.trial || sent.Get("phases[0][default_payment_method]") != c.card || sent.Get("phases[1][default_payment_method]") != c.card ||
				sent.Get("phases[0][items][0][price]") != "price_1" || sent.Get("phases[1][items][0][price]") != "price_2" {
				t.Errorf("it was sent as %v", sent)
			}
		})
	}
}
