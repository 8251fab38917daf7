package fidelity

import (
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v79"
)

const day = 24 * time.Hour

// TestConversation leads objects through their states. What is asserted here is
// little: the tee judges each request, answer and webhook.
func TestConversation(t *testing.T) {
	t.Parallel()
	asked := map[string]bool{}
	for name, requests := range map[string]func(*shop){
		"about the catalog": talkCatalog, "about customers": talkCustomers, "about checkouts": talkCheckouts,
		"about subscriptions": talkSubscriptions, "about upgrades": talkUpgrades, "about schedules": talkSchedules,
		"about renewals": talkRenewals, "about refunds": talkRefunds, "about disputes": talkDisputes,
		"about the account": talkAccount, "about payment methods": talkMethods, "about refusals": talkRefusals,
	} {
		t.Run(name, func(t *testing.T) {
			s := openShop(t)
			requests(s)
			must(t, s.server.Flush(t.Context(), s.app))
			each(t, s.api.Events.List(&stripe.EventListParams{}))
			maps.Copy(asked, s.tee.asked)
		})
	}
	t.Run("has been about every route that the sandbox has", func(t *testing.T) {
		for _, route := range unasked(sandboxRoutes(t), asked) {
			t.Errorf("%s %s was never asked", route.method, route.pattern)
		}
	})
}

func talkCatalog(s *shop) {
	product := ok(s.api.Products.New(&stripe.ProductParams{
		ID: stripe.String("psr_1"), Name: stripe.String("Pro"), Active: stripe.Bool(true), Description: stripe.String("All of it"),
		Metadata: map[string]string{"app_id": "a", "plan_key": "pro"},
	}))(s)
	price := ok(s.api.Prices.New(&stripe.PriceParams{
		Product: &product.ID, Currency: stripe.String("usd"), UnitAmount: stripe.Int64(2900), Metadata: map[string]string{"plan": "pro"},
		Recurring: &stripe.PriceRecurringParams{Interval: stripe.String("month")}, LookupKey: stripe.String("psr:1:p1"),
	}))(s)
	free := ok(s.api.Prices.New(&stripe.PriceParams{
		Product: &product.ID, Currency: stripe.String("jpy"), UnitAmount: stripe.Int64(0), Nickname: stripe.String("free"),
		Recurring: &stripe.PriceRecurringParams{Interval: stripe.String("year"), IntervalCount: stripe.Int64(1)},
		LookupKey: stripe.String("psr:1:p1"), TransferLookupKey: stripe.Bool(true),
	}))(s)
	ok(s.api.Prices.New(&stripe.PriceParams{Product: &product.ID, Currency: stripe.String("usd"), UnitAmount: stripe.Int64(100)}))(s)
	ok(s.api.Products.Update(product.ID, &stripe.ProductParams{Name: stripe.String("Pro 2"), DefaultPrice: &free.ID}))(s)
	ok(s.api.Products.Update(product.ID, &stripe.ProductParams{Active: stripe.Bool(false)}))(s)
	expanded := &stripe.ProductParams{}
	expanded.AddExpand("default_price")
	ok(s.api.Products.Get(product.ID, expanded))(s)
	ok(s.api.Prices.Update(price.ID, &stripe.PriceParams{Active: stripe.Bool(false)}))(s)
	ok(s.api.Prices.Get(price.ID, nil))(s)
	byKey := &stripe.PriceListParams{LookupKeys: stripe.StringSlice([]string{"psr:1:p1"})}
	byKey.AddExpand("data.product")
	if n := each(s, s.api.Prices.List(byKey)); n != 1 {
		s.Errorf("%d prices have the key", n)
	}
}

func talkCustomers(s *shop) {
	customer := ok(s.api.Customers.New(&stripe.CustomerParams{
		Email: stripe.String("ada@example.com"), Name: stripe.String("Ada"), Metadata: map[string]string{"identity_hash": "h1"},
		PaymentMethod: stripe.String("pm_card_visa"),
	}))(s)
	ok(s.api.Customers.New(nil))(s)
	ok(s.api.Customers.Update(customer.ID, &stripe.CustomerParams{
		Description: stripe.String("a customer"), InvoiceSettings: &stripe.CustomerInvoiceSettingsParams{DefaultPaymentMethod: stripe.String("pm_card_visa")},
	}))(s)
	expanded := &stripe.CustomerParams{}
	expanded.AddExpand("invoice_settings.default_payment_method")
	got := ok(s.api.Customers.Get(customer.ID, expanded))(s)
	ok(s.api.PaymentMethods.Get(got.InvoiceSettings.DefaultPaymentMethod.ID, nil))(s)
	found := s.api.Customers.Search(&stripe.CustomerSearchParams{SearchParams: stripe.SearchParams{Query: `metadata["identity_hash"]:"h1"`}})
	if n := each(s, found); n != 1 {
		s.Errorf("%d customers are found", n)
	}
	ok(s.api.CustomerBalanceTransactions.New(&stripe.CustomerBalanceTransactionParams{
		Customer: &customer.ID, Amount: stripe.Int64(-500), Currency: stripe.String("usd"), Description: stripe.String("a credit"),
		Metadata: map[string]string{"invoice": "in_1"},
	}))(s)
	if n := each(s, s.api.CustomerBalanceTransactions.List(&stripe.CustomerBalanceTransactionListParams{Customer: &customer.ID})); n != 1 {
		s.Errorf("%d balance transactions are listed", n)
	}
	ok(s.api.BillingPortalSessions.New(&stripe.BillingPortalSessionParams{Customer: &customer.ID}))(s)
	configuration := ok(s.api.BillingPortalConfigurations.New(&stripe.BillingPortalConfigurationParams{
		BusinessProfile:  &stripe.BillingPortalConfigurationBusinessProfileParams{Headline: stripe.String("Purser")},
		DefaultReturnURL: stripe.String("https://shop.test/account"),
		Features: &stripe.BillingPortalConfigurationFeaturesParams{
			PaymentMethodUpdate: &stripe.BillingPortalConfigurationFeaturesPaymentMethodUpdateParams{Enabled: stripe.Bool(true)},
			InvoiceHistory:      &stripe.BillingPortalConfigurationFeaturesInvoiceHistoryParams{Enabled: stripe.Bool(true)},
			SubscriptionCancel:  &stripe.BillingPortalConfigurationFeaturesSubscriptionCancelParams{Enabled: stripe.Bool(false)},
		},
	}))(s)
	ok(s.api.BillingPortalSessions.New(&stripe.BillingPortalSessionParams{
		Customer: &customer.ID, ReturnURL: stripe.String("https://shop.test/account"), Configuration: &configuration.ID,
		FlowData: &stripe.BillingPortalSessionFlowDataParams{Type: stripe.String("payment_method_update")},
	}))(s)
	ok(s.api.Customers.Del(customer.ID, nil))(s)
	ok(s.api.Customers.Get(customer.ID, nil))(s)
}

func talkCheckouts(s *shop) {
	open := ok(s.api.CheckoutSessions.New(topupOrder(500)))(s)
	ok(s.api.CheckoutSessions.Expire(open.ID, nil))(s)
	forgotten := ok(s.api.CheckoutSessions.New(topupOrder(500)))(s)
	s.submit(forgotten.URL, cardDeclined)
	lined := &stripe.CheckoutSessionParams{}
	lined.AddExpand("line_items")
	lined.AddExpand("customer")
	ok(s.api.CheckoutSessions.Get(forgotten.ID, lined))(s)
	paid := s.topup(3000, cardPays)
	ok(s.api.PaymentIntents.Get(paid.PaymentIntent.ID, nil))(s)
	ok(s.api.Charges.Get(paid.PaymentIntent.LatestCharge.ID, nil))(s)
	s.topup(3000, bankSucceeds)
	failing := s.topup(3000, bankFails)
	s.subscribe(s.price(2900), bankSucceeds)
	s.subscribe(s.price(2900), bankFails)
	s.advance(4 * day)
	ok(s.api.PaymentIntents.Get(failing.PaymentIntent.ID, nil))(s)
	customer := ok(s.api.Customers.New(nil))(s)
	free := s.subscriptionOrder(customer, s.price(0))
	free.PaymentMethodCollection, free.ExpiresAt = stripe.String("if_required"), nil
	session := ok(s.api.CheckoutSessions.New(free))(s)
	s.pay(session.URL, "action=start")
	if n := each(s, s.api.CheckoutSessions.List(&stripe.CheckoutSessionListParams{})); n != 8 {
		s.Errorf("%d sessions are listed", n)
	}
	each(s, s.api.CheckoutSessions.List(&stripe.CheckoutSessionListParams{Customer: &customer.ID, Status: stripe.String("complete")}))
}

func talkSubscriptions(s *shop) {
	subscription := s.subscribe(s.price(2900), cardPays)
	expanded := &stripe.SubscriptionParams{}
	for _, path := range []string{"latest_invoice.payment_intent.latest_charge", "latest_invoice.charge", "default_payment_method", "customer", "schedule", "items.data.price.product"} {
		expanded.AddExpand(path)
	}
	ok(s.api.Subscriptions.Get(subscription.ID, expanded))(s)
	ok(s.api.Invoices.Upcoming(&stripe.InvoiceUpcomingParams{Subscription: &subscription.ID}))(s)
	ok(s.api.Subscriptions.Update(subscription.ID, &stripe.SubscriptionParams{CancelAtPeriodEnd: stripe.Bool(true)}))(s)
	ok(s.api.Subscriptions.Update(subscription.ID, &stripe.SubscriptionParams{CancelAtPeriodEnd: stripe.Bool(false)}))(s)
	ok(s.api.Subscriptions.Update(subscription.ID, &stripe.SubscriptionParams{Metadata: map[string]string{"a": "b"}}))(s)
	ok(s.api.Subscriptions.Update(subscription.ID, &stripe.SubscriptionParams{CancelAt: stripe.Int64(subscription.CurrentPeriodEnd)}))(s)
	undo := &stripe.SubscriptionParams{}
	undo.AddExtra("cancel_at", "")
	ok(s.api.Subscriptions.Update(subscription.ID, undo))(s)
	ok(s.api.Subscriptions.Cancel(subscription.ID, &stripe.SubscriptionCancelParams{Prorate: stripe.Bool(false), InvoiceNow: stripe.Bool(false)}))(s)

	customer := ok(s.api.Customers.New(nil))(s)
	price := s.price(900)
	waiting := ok(s.api.Subscriptions.New(&stripe.SubscriptionParams{
		Customer: &customer.ID, Items: []*stripe.SubscriptionItemsParams{{Price: &price.ID}}, PaymentBehavior: stripe.String("default_incomplete"),
		PaymentSettings: &stripe.SubscriptionPaymentSettingsParams{SaveDefaultPaymentMethod: stripe.String("on_subscription")},
	}))(s)
	ok(s.api.Invoices.Pay(waiting.LatestInvoice.ID, &stripe.InvoicePayParams{PaymentMethod: stripe.String("pm_card_visa")}))(s)
	lost := ok(s.api.Subscriptions.New(&stripe.SubscriptionParams{
		Customer: &customer.ID, Items: []*stripe.SubscriptionItemsParams{{Price: &price.ID}}, PaymentBehavior: stripe.String("default_incomplete"),
	}))(s)
	ok(s.api.Invoices.Get(lost.LatestInvoice.ID, nil))(s)
	each(s, s.api.Invoices.ListLines(&stripe.InvoiceListLinesParams{Invoice: stripe.String(lost.LatestInvoice.ID)}))
	s.advance(24 * time.Hour)
	list := &stripe.SubscriptionListParams{Status: stripe.String("all")}
	list.AddExpand("data.latest_invoice")
	if n := each(s, s.api.Subscriptions.List(list)); n != 3 {
		s.Errorf("%d subscriptions are listed", n)
	}
	each(s, s.api.Invoices.List(&stripe.InvoiceListParams{Status: stripe.String("paid"), CreatedRange: &stripe.RangeQueryParams{GreaterThanOrEqual: 1}}))
}

func talkUpgrades(s *shop) {
	small, big := s.price(2900), s.price(9900)
	paid := s.subscribe(small, cardPays)
	ok(s.api.Subscriptions.Update(paid.ID, upgradeTo(paid, big)))(s)
	for _, end := range []func(*stripe.Subscription){
		func(pending *stripe.Subscription) { s.pay(pending.LatestInvoice.HostedInvoiceURL, cardPays) },
		func(pending *stripe.Subscription) { ok(s.api.Invoices.VoidInvoice(pending.LatestInvoice.ID, nil))(s) },
		func(*stripe.Subscription) { s.advance(23 * time.Hour) },
	} {
		asking := s.subscribe(small, cardAsksAlways)
		pending := ok(s.api.Subscriptions.Update(asking.ID, upgradeTo(asking, big)))(s)
		if pending.PendingUpdate == nil {
			s.Fatal("the upgrade is not pending")
		}
		end(pending)
		ok(s.api.Subscriptions.Get(asking.ID, nil))(s)
	}
	prorated := s.subscribe(small, cardPays)
	s.advance(10 * day)
	params := upgradeTo(prorated, big)
	params.BillingCycleAnchorNow, params.ProrationBehavior = nil, stripe.String("always_invoice")
	ok(s.api.Subscriptions.Update(prorated.ID, params))(s)
}

func talkSchedules(s *shop) {
	small, big := s.price(2900), s.price(9900)
	for _, end := range []func(*stripe.SubscriptionSchedule){
		func(schedule *stripe.SubscriptionSchedule) {
			ok(s.api.SubscriptionSchedules.Release(schedule.ID, nil))(s)
		},
		func(schedule *stripe.SubscriptionSchedule) {
			ok(s.api.Subscriptions.Cancel(schedule.Subscription.ID, nil))(s)
		},
		func(*stripe.SubscriptionSchedule) { s.advance(32 * day); s.advance(32 * day) },
	} {
		subscription := s.subscribe(big, cardPays)
		made := ok(s.api.SubscriptionSchedules.New(&stripe.SubscriptionScheduleParams{FromSubscription: &subscription.ID}))(s)
		queued := ok(s.api.SubscriptionSchedules.Update(made.ID, downgradeTo(made, small)))(s)
		end(queued)
		expanded := &stripe.SubscriptionScheduleParams{}
		expanded.AddExpand("subscription")
		ok(s.api.SubscriptionSchedules.Get(queued.ID, expanded))(s)
	}
}

func talkRenewals(s *shop) {
	price := s.price(2900)
	renewed, failing, asking := s.subscribe(price, cardPays), s.subscribe(price, cardPays), s.subscribe(price, cardAsksAlways)
	unwanted := s.subscribe(price, cardPays)
	portal := ok(s.api.BillingPortalSessions.New(&stripe.BillingPortalSessionParams{Customer: &failing.Customer.ID}))(s)
	if status, _ := s.submit(portal.URL, cardFailsLater); status >= 400 {
		s.Fatalf("the portal answers %d", status)
	}
	s.advance(time.Unix(unwanted.CurrentPeriodEnd, 0).Sub(s.clock()) + time.Minute) // the last one's
	if n := each(s, s.api.Invoices.List(&stripe.InvoiceListParams{Status: stripe.String("draft")})); n != 4 {
		s.Errorf("%d drafts", n)
	}
	draft := ok(s.api.Subscriptions.Get(unwanted.ID, nil))(s).LatestInvoice.ID
	if open := ok(s.api.Invoices.FinalizeInvoice(draft, &stripe.InvoiceFinalizeInvoiceParams{AutoAdvance: stripe.Bool(false)}))(s); open.Status != "open" || open.AutoAdvance || open.AmountPaid != 0 {
		s.Errorf("a draft that was finalised is %s", open.Status)
	}
	if void := ok(s.api.Invoices.VoidInvoice(draft, nil))(s); void.Status != "void" {
		s.Errorf("then voided it is %s", void.Status)
	}
	s.advance(2 * time.Hour)
	overdue := ok(s.api.Subscriptions.Get(failing.ID, nil))(s)
	if overdue.Status != "past_due" {
		s.Errorf("the subscription is %s", overdue.Status)
	}
	ok(s.api.Invoices.Get(overdue.LatestInvoice.ID, nil))(s)
	s.advance(20 * day)
	for _, id := range []string{failing.ID, asking.ID} {
		if ended := ok(s.api.Subscriptions.Get(id, nil))(s); ended.Status != "canceled" {
			s.Errorf("at the end it is %s", ended.Status)
		}
	}
	ok(s.api.Subscriptions.Update(renewed.ID, &stripe.SubscriptionParams{CancelAtPeriodEnd: stripe.Bool(true)}))(s)
	s.advance(32 * day)
}

func talkRefunds(s *shop) {
	for _, with := range []string{cardPays, cardRefundFails, cardRefundPends} {
		charge := s.topup(3000, with).PaymentIntent.LatestCharge
		refund := ok(s.api.Refunds.New(&stripe.RefundParams{
			Charge: &charge.ID, Amount: stripe.Int64(1000), Reason: stripe.String("requested_by_customer"), Metadata: map[string]string{"a": "b"},
		}))(s)
		ok(s.api.Refunds.New(&stripe.RefundParams{PaymentIntent: &refund.PaymentIntent.ID}))(s)
		s.advance(2 * time.Hour)
		expanded := &stripe.RefundParams{}
		expanded.AddExpand("charge")
		ok(s.api.Refunds.Get(refund.ID, expanded))(s)
		if n := each(s, s.api.Refunds.List(&stripe.RefundListParams{Charge: &charge.ID})); n != 2 {
			s.Errorf("%d refunds are listed", n)
		}
		listed := &stripe.ChargeParams{}
		listed.AddExpand("refunds")
		listed.AddExpand("payment_intent")
		ok(s.api.Charges.Get(charge.ID, listed))(s)
	}
}

func talkDisputes(s *shop) {
	for with, outcomes := range map[string][]string{cardPays: {"open", "won"}, cardDisputed: {"lost"}, cardInquired: {"open", "lost"}} {
		session := s.topup(3000, with)
		for _, outcome := range outcomes {
			s.dispute(session, outcome)
		}
		intent := session.PaymentIntent
		list := s.api.Disputes.List(&stripe.DisputeListParams{PaymentIntent: &intent.ID})
		if !list.Next() {
			s.Fatalf("no dispute: %v", list.Err())
		}
		expanded := &stripe.DisputeParams{}
		expanded.AddExpand("charge")
		ok(s.api.Disputes.Get(list.Dispute().ID, expanded))(s)
		ok(s.api.Charges.Get(intent.LatestCharge.ID, nil))(s)
	}
}

func talkAccount(s *shop) {
	ok(s.api.Accounts.Get())(s)
	program := httptest.NewServer(http.NotFoundHandler())
	s.Cleanup(program.Close)
	endpoint := ok(s.api.WebhookEndpoints.New(&stripe.WebhookEndpointParams{
		URL: stripe.String(program.URL), EnabledEvents: stripe.StringSlice(listened), APIVersion: stripe.String(stripe.APIVersion),
		Description: stripe.String("billing"),
	}))(s)
	each(s, s.api.WebhookEndpoints.List(&stripe.WebhookEndpointListParams{}))
	ok(s.api.WebhookEndpoints.Del(endpoint.ID, nil))(s)
	s.subscribe(s.price(2900), cardPays)
	events := &stripe.EventListParams{
		Types: stripe.StringSlice([]string{"invoice.paid", "checkout.session.completed"}), CreatedRange: &stripe.RangeQueryParams{GreaterThan: 1},
		DeliverySuccess: stripe.Bool(true),
	}
	list := s.api.Events.List(events)
	if !list.Next() {
		s.Fatalf("no event: %v", list.Err())
	}
	ok(s.api.Events.Get(list.Event().ID, nil))(s)
	clock := ok(s.api.TestHelpersTestClocks.New(&stripe.TestHelpersTestClockParams{FrozenTime: stripe.Int64(time.Now().Unix()), Name: stripe.String("a clock")}))(s)
	ok(s.api.TestHelpersTestClocks.Advance(clock.ID, &stripe.TestHelpersTestClockAdvanceParams{FrozenTime: stripe.Int64(time.Now().Add(day).Unix())}))(s)
	ok(s.api.TestHelpersTestClocks.Get(clock.ID, nil))(s)
	ok(s.api.Customers.New(&stripe.CustomerParams{TestClock: &clock.ID}))(s)
}

func talkMethods(s *shop) {
	customer := ok(s.api.Customers.New(&stripe.CustomerParams{Email: stripe.String("ada@example.com")}))(s)
	method := ok(s.api.PaymentMethods.New(&stripe.PaymentMethodParams{
		Type: stripe.String("card"), Card: &stripe.PaymentMethodCardParams{Token: stripe.String("tok_visa")}, Metadata: map[string]string{"a": "b"},
	}))(s)
	ok(s.api.PaymentMethods.Attach(method.ID, &stripe.PaymentMethodAttachParams{Customer: &customer.ID}))(s)
	each(s, s.api.PaymentMethods.List(&stripe.PaymentMethodListParams{Customer: &customer.ID, Type: stripe.String("card")}))
	each(s, s.api.Customers.ListPaymentMethods(&stripe.CustomerListPaymentMethodsParams{Customer: &customer.ID}))
	ok(s.api.PaymentMethods.Detach(method.ID, nil))(s)
	s.subscribe(s.price(2900), cardPays)
	each(s, s.api.Customers.List(&stripe.CustomerListParams{}))
	each(s, s.api.Products.List(&stripe.ProductListParams{Active: stripe.Bool(true)}))
	each(s, s.api.Charges.List(&stripe.ChargeListParams{}))
	each(s, s.api.PaymentIntents.List(&stripe.PaymentIntentListParams{}))
}

// talkRefusals looks at the shape of each kind of error.
func talkRefusals(s *shop) {
	_, unknown := s.api.Subscriptions.Get("sub_none", nil)
	_, missing := s.api.Products.New(&stripe.ProductParams{})
	keyed := func(name string) *stripe.CustomerParams {
		params := &stripe.CustomerParams{Name: &name}
		params.SetIdempotencyKey("key-1")
		return params
	}
	ok(s.api.Customers.New(keyed("Ada")))(s)
	_, reused := s.api.Customers.New(keyed("Bob"))
	customer := ok(s.api.Customers.New(nil))(s)
	price := s.price(2900)
	waiting := ok(s.api.Subscriptions.New(&stripe.SubscriptionParams{
		Customer: &customer.ID, Items: []*stripe.SubscriptionItemsParams{{Price: &price.ID}}, PaymentBehavior: stripe.String("default_incomplete"),
	}))(s)
	_, declined := s.api.Invoices.Pay(waiting.LatestInvoice.ID, &stripe.InvoicePayParams{PaymentMethod: stripe.String("pm_card_chargeCustomerFail")})
	_, asked := s.api.Invoices.Pay(waiting.LatestInvoice.ID, &stripe.InvoicePayParams{PaymentMethod: stripe.String("pm_card_authenticationRequired")})
	for name, err := range map[string]error{"unknown": unknown, "missing": missing, "reused": reused, "declined": declined, "asked": asked} {
		var refusal *stripe.Error
		if !errors.As(err, &refusal) {
			s.Errorf("%s is not refused: %v", name, err)
		}
	}
}

// listened are the events that billing subscribes to.
var listened = []string{
	"checkout.session.completed", "checkout.session.async_payment_succeeded", "checkout.session.async_payment_failed", "checkout.session.expired",
	"customer.subscription.created", "customer.subscription.updated", "customer.subscription.deleted", "customer.subscription.paused",
	"customer.subscription.resumed", "customer.subscription.pending_update_applied", "customer.subscription.pending_update_expired",
	"invoice.paid", "invoice.payment_failed", "invoice.payment_action_required", "invoice.voided", "invoice.marked_uncollectible",
	"invoice.finalization_failed", "charge.refunded", "charge.refund.updated", "refund.created", "refund.updated",
	"charge.dispute.created", "charge.dispute.updated", "charge.dispute.closed", "charge.dispute.funds_withdrawn", "charge.dispute.funds_reinstated",
	"subscription_schedule.updated", "subscription_schedule.released", "subscription_schedule.aborted", "subscription_schedule.canceled",
	"subscription_schedule.completed", "customer.deleted",
}
