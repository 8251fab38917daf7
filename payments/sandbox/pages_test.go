package sandbox_test

import (
	"context"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v79"

	"purser/ids"
	"purser/payments/sandbox"
)

// portal opens the portal for a customer.
func (r *harness) portal(customer string, change ...func(*stripe.BillingPortalSessionParams)) string {
	r.Helper()
	params := &stripe.BillingPortalSessionParams{Customer: stripe.String(customer), ReturnURL: stripe.String("http://shop.test/account")}
	for _, c := range change {
		c(params)
	}
	return ok[*stripe.BillingPortalSession](r)(r.api.BillingPortalSessions.New(params)).URL
}

// pages are one of each, as a person meets them.
func (r *harness) pages() map[string]string {
	r.Helper()
	s := r.subscribe(r.price(2900), cardAsksAlways)
	pending := ok[*stripe.Subscription](r)(r.upgrade(s, r.price(9900)))
	open := r.checkout(r.customer(), r.price(2900))
	_, bank, _ := r.submit(pending.LatestInvoice.HostedInvoiceURL, url.Values{"card": {cardAsksAlways}})
	return map[string]string{
		"checkout": open.URL, "invoice": pending.LatestInvoice.HostedInvoiceURL, "authentication": bank, "portal": r.portal(s.Customer.ID),
	}
}

func TestPages(t *testing.T) {
	t.Parallel()
	r := start(t)
	pages := r.pages()
	inline := regexp.MustCompile(`(?i)<style|\sstyle=|\son[a-z]+=|javascript:|<script(?:\s+[^>]*)?>[^<]`)
	foreign := regexp.MustCompile(`(?:src|href)="(?:https?:)?//`)

	for name, address := range pages {
		t.Run("say on the "+name+" page that this is a sandbox, and load nothing from elsewhere", func(t *testing.T) {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
			must(t, err)
			response, err := r.http.Client().Do(request)
			must(t, err)
			response.Body.Close()
			for header, want := range map[string]string{
				"Content-Type": "text/html", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "same-origin",
				"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; manifest-src 'self'; ",
			} {
				if got := response.Header.Get(header); !strings.HasPrefix(got, want) {
					t.Errorf("%s is %q", header, got)
				}
			}
			status, body := r.visit(address)
			if status != http.StatusOK || !strings.Contains(body, "SANDBOX") || !strings.HasSuffix(body, "</html>") {
				t.Errorf("it answers %d", status)
			}
			if found := inline.FindString(body); found != "" {
				t.Errorf("something is inline: %s", found)
			}
			if found := foreign.FindString(strings.ReplaceAll(body, `href="http://shop.test/`, "")); found != "" {
				t.Errorf("something is from elsewhere: %s", found)
			}
		})

		t.Run("refuse a form for the "+name+" page that comes from another site", func(t *testing.T) {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader("card="+cardPays+"&result=complete"))
			must(t, err)
			request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			request.Header.Set("Sec-Fetch-Site", "cross-site")
			if status, _, _ := r.do(request); status != http.StatusForbidden {
				t.Errorf("it answers %d", status)
			}
		})

		t.Run("are not there at an address near the "+name+" page", func(t *testing.T) {
			elsewhere := strings.Replace(address, r.app.Format(ids.Application), ids.New().Format(ids.Application), 1)
			for _, wrong := range []string{address + "x", address[:len(address)-1], elsewhere} {
				if status, _ := r.visit(wrong); status != http.StatusNotFound {
					t.Errorf("%s answers %d", wrong, status)
				}
				if status, _, _ := r.submit(wrong, url.Values{"card": {cardPays}, "result": {"complete"}}); status != http.StatusNotFound {
					t.Errorf("a form for %s answers %d", wrong, status)
				}
			}
		})
	}

	t.Run("show hostile text as text", func(t *testing.T) {
		r := start(t)
		const hostile = `<script>alert(1)</script>`
		price := r.price(2900)
		ok[*stripe.Product](t)(r.api.Products.Update(price.Product.ID, &stripe.ProductParams{Name: stripe.String(hostile)}))
		if _, body := r.visit(r.checkout(r.customer(), price).URL); strings.Contains(body, hostile) || !strings.Contains(body, "&lt;script&gt;") {
			t.Error("it is not escaped")
		}
	})

	t.Run("offer every test card", func(t *testing.T) {
		_, body := r.visit(pages["checkout"])
		for _, card := range []string{cardPays, cardDeclined, cardNoFunds, cardFailsLater, cardAsksOnce, cardAsksAlways, cardDisputed, cardInquired, cardRefundFails, cardRefundPends} {
			if !strings.Contains(body, `value="`+card+`"`) {
				t.Errorf("%s is missing", card)
			}
		}
	})

	t.Run("take a number as people type it", func(t *testing.T) {
		r := start(t)
		if to := r.pay(r.topup(500).URL, "4242 4242-4242 4242"); to != "http://shop.test/thanks" {
			t.Errorf("sent to %s", to)
		}
	})

	t.Run("take forms up to their limit", func(t *testing.T) {
		if status, _, _ := r.submit(pages["checkout"], url.Values{"card": {strings.Repeat("4", 4<<10)}}); status != http.StatusBadRequest {
			t.Errorf("it answers %d", status)
		}
	})

	t.Run("ask for a result that they know", func(t *testing.T) {
		if status, _, _ := r.submit(pages["authentication"], url.Values{"result": {"maybe"}}); status != http.StatusBadRequest {
			t.Errorf("it answers %d", status)
		}
	})
}

func TestPortal(t *testing.T) {
	t.Parallel()

	t.Run("shows the card and the invoices, and replaces the card", func(t *testing.T) {
		t.Parallel()
		r := start(t)
		s := r.subscribe(r.price(2900), cardPays)
		page := r.portal(s.Customer.ID)
		if _, body := r.visit(page); !strings.Contains(body, "•••• 4242") || !strings.Contains(body, s.LatestInvoice.Number) || !strings.Contains(body, "http://shop.test/account") {
			t.Error("something is missing")
		}
		r.events()
		r.saveCard(s.Customer.ID, cardAsksAlways)
		r.wantEvents("subscription.updated")
		if _, body := r.visit(page); !strings.Contains(body, "•••• 3184") {
			t.Error("the new card is not shown")
		}
		params := &stripe.SubscriptionParams{}
		params.AddExpand("default_payment_method")
		if got := ok[*stripe.Subscription](t)(r.api.Subscriptions.Get(s.ID, params)); got.DefaultPaymentMethod.Card.Last4 != "3184" {
			t.Errorf("the subscription has %s", got.DefaultPaymentMethod.Card.Last4)
		}
	})

	t.Run("keeps the card when the new one is declined or unknown", func(t *testing.T) {
		t.Parallel()
		r := start(t)
		s := r.subscribe(r.price(2900), cardPays)
		page := r.portal(s.Customer.ID)
		for _, card := range []string{cardDeclined, cardNoFunds, "4111111111111111"} {
			status, _, body := r.submit(page, url.Values{"card": {card}})
			if status != http.StatusPaymentRequired || !strings.Contains(body, "•••• 4242") || !strings.Contains(body, `role="alert"`) {
				t.Errorf("%s: %d", card, status)
			}
		}
	})

	t.Run("offers what its configuration says", func(t *testing.T) {
		t.Parallel()
		r := start(t)
		s := r.subscribe(r.price(2900), cardPays)
		configured := func(card, invoices bool) string {
			made := ok[*stripe.BillingPortalConfiguration](t)(r.api.BillingPortalConfigurations.New(&stripe.BillingPortalConfigurationParams{
				BusinessProfile: &stripe.BillingPortalConfigurationBusinessProfileParams{Headline: stripe.String("Us")},
				Features: &stripe.BillingPortalConfigurationFeaturesParams{
					PaymentMethodUpdate: &stripe.BillingPortalConfigurationFeaturesPaymentMethodUpdateParams{Enabled: stripe.Bool(card)},
					InvoiceHistory:      &stripe.BillingPortalConfigurationFeaturesInvoiceHistoryParams{Enabled: stripe.Bool(invoices)},
				},
			}))
			if made.Features.PaymentMethodUpdate.Enabled != card || made.Features.SubscriptionCancel.Enabled {
				t.Errorf("made %+v", made.Features)
			}
			return r.portal(s.Customer.ID, func(p *stripe.BillingPortalSessionParams) { p.Configuration = stripe.String(made.ID) })
		}
		page := configured(false, false)
		if _, body := r.visit(page); strings.Contains(body, "Update card") || strings.Contains(body, s.LatestInvoice.Number) {
			t.Error("it offers what is off")
		}
		if status, _, _ := r.submit(page, url.Values{"card": {cardPays}}); status != http.StatusPaymentRequired {
			t.Errorf("changing the card answers %d", status)
		}
	})

	t.Run("closes after a day", func(t *testing.T) {
		t.Parallel()
		r := start(t)
		page := r.portal(r.customer().ID)
		r.advance(24 * time.Hour)
		if status, _ := r.visit(page); status != http.StatusOK {
			t.Errorf("after a day it answers %d", status)
		}
		r.advance(time.Second)
		if status, _ := r.visit(page); status != http.StatusNotFound {
			t.Errorf("later it answers %d", status)
		}
	})
}

func TestPagesNameTheSeller(t *testing.T) {
	t.Parallel()
	r := start(t)
	pages := r.pages()
	r.seller = "Chat & Co"
	for _, name := range []string{"checkout", "invoice", "portal"} {
		if _, body := r.visit(pages[name]); !strings.Contains(body, "Chat &amp; Co") {
			t.Errorf("%s names no seller", name)
		}
	}
	r.seller = ""
	account := ok[*stripe.Account](t)(r.api.Accounts.Get())
	if _, body := r.visit(pages["checkout"]); !strings.Contains(body, account.ID) {
		t.Errorf("without a name, %s is not shown", account.ID)
	}
}

func TestAnOpenInvoice(t *testing.T) {
	t.Parallel()
	r := start(t)
	s := r.subscribe(r.price(2900), cardPays)
	r.saveCard(s.Customer.ID, cardFailsLater)
	r.advanceTo(time.Unix(s.CurrentPeriodEnd, 0).UTC().Add(time.Hour))
	portal := r.portal(s.Customer.ID)
	invoice := r.subscription(s.ID).LatestInvoice

	t.Run("is announced in the portal, also once a good card is saved", func(t *testing.T) {
		r.saveCard(s.Customer.ID, cardPays)
		_, body := r.visit(portal)
		for _, want := range []string{"29.00 USD is due", "ll retry the saved card on", "Pay now"} {
			if !strings.Contains(body, want) {
				t.Errorf("it does not say %q", want)
			}
		}
	})
	t.Run("says what is due until it is paid, and what was paid after, with a way back", func(t *testing.T) {
		token := portal[strings.LastIndex(portal, "/")+1:]
		address := invoice.HostedInvoiceURL + "?portal=" + token
		if _, body := r.visit(address); !strings.Contains(body, "Amount due") || !strings.Contains(body, `href="../portal/`+token+`"`) {
			t.Error("before")
		}
		_, to, _ := r.submit(address, url.Values{"card": {cardPays}})
		_, body := r.visit(to)
		if !strings.Contains(body, "Amount paid") || strings.Contains(body, "Amount due") || !strings.Contains(body, `href="../portal/`+token+`"`) {
			t.Errorf("after, at %s", to)
		}
		if _, body := r.visit(portal); strings.Contains(body, "is open") {
			t.Error("the portal still asks for it")
		}
	})
	t.Run("leads to the shop when it was opened from elsewhere, and to no other customer's portal", func(t *testing.T) {
		foreign := r.portal(r.customer().ID)
		for _, query := range []string{"", "?portal=", "?portal=" + foreign[strings.LastIndex(foreign, "/")+1:]} {
			_, body := r.visit(invoice.HostedInvoiceURL + query)
			if !strings.Contains(body, `href="http://shop.test/`) || strings.Contains(body, "../portal/") {
				t.Errorf("%q leads elsewhere", query)
			}
		}
	})
}

func TestUnknownPath(t *testing.T) {
	t.Parallel()
	r := start(t)
	for _, path := range []string{"/sandbox/", "/sandbox/nothing", "/sandbox/apps/" + r.app.Format(ids.Application) + "/nothing"} {
		if status, body := r.visit(r.http.URL + path); status != http.StatusNotFound || !strings.Contains(body, "Page not found") {
			t.Errorf("%s answers %d", path, status)
		}
	}
}

// What a redirect waits for depends on the time that its request has.
func TestARedirectLeavesTimeToItsRequest(t *testing.T) {
	t.Parallel()
	if got := sandbox.RedirectTime(t.Context()); got != 10*time.Second {
		t.Errorf("without a deadline it waits %s", got)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	if got := sandbox.RedirectTime(ctx); got > 40*time.Minute || got < 20*time.Minute {
		t.Errorf("of an hour it waits %s", got)
	}
}
