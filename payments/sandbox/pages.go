package sandbox

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"purser/fault"
	"purser/ids"
	"purser/payments/sandbox/engine"
	"purser/payments/sandbox/pages"
	"purser/payments/sandbox/persist"
	"purser/views/page"
)

// pageRoutes registers the hosted pages. The token in a page's address is its only
// secret, as at any hosted checkout.
func (s *Server) pageRoutes(mux *http.ServeMux) {
	guard := http.NewCrossOriginProtection()
	// Behind a proxy the public origin differs from the request's host.
	if base, err := url.Parse(s.options.BaseURL); err == nil && base.Host != "" {
		if err := guard.AddTrustedOrigin(base.Scheme + "://" + base.Host); err != nil {
			s.options.Log.Warn("sandbox public address is not a valid origin", "cause", err)
		}
	}
	guard.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.fail(w, r, &engine.Refusal{Status: http.StatusForbidden, Message: "This form was sent from another site."})
	}))
	handle := func(path string, at engine.HostedPage, show hostedPage, submit pageHandler) {
		pattern := " /sandbox/apps/{app}/" + path + "/{token}"
		mux.HandleFunc("GET"+pattern, s.servePage(at, func(w http.ResponseWriter, r *http.Request, p pageRequest) error {
			return show(w, r, p, http.StatusOK, "")
		}))
		mux.Handle("POST"+pattern, guard.Handler(s.servePage(at, submit)))
	}
	handle("checkout", engine.CheckoutPage, s.checkoutPage, s.submitCheckout)
	handle("authenticate", engine.AuthenticatePage, s.challengePage, s.submitChallenge)
	handle("invoice", engine.InvoicePage, s.invoicePage, s.submitInvoice)
	handle("portal", engine.PortalPage, s.portalPage, s.submitPortal)
	mux.HandleFunc(Prefix, func(w http.ResponseWriter, r *http.Request) { s.fail(w, r, engine.NotFound("page", "")) })
}

// hostedPage renders a page of an application, with the reason of a failed attempt.
type hostedPage func(w http.ResponseWriter, r *http.Request, p pageRequest, status int, reason string) error

// pageHandler serves a hosted page of an application.
type pageHandler func(w http.ResponseWriter, r *http.Request, p pageRequest) error

type pageRequest struct {
	app         ids.ID
	token       string
	key         string // of the object that the page shows
	releaseSlot func() // releases the page slot before the request ends
}

// No inline and no external resources. form-action allows any web address: browsers
// apply it to the redirect after a form too, and a checkout redirects to the caller's
// site.
const contentSecurityPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; manifest-src 'self'; " +
	"form-action 'self' http: https:; frame-ancestors 'none'; base-uri 'none'"

const maxPageForm = 4 << 10

func (s *Server) servePage(at engine.HostedPage, v pageHandler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, maxPageForm)
		// Before a slot is acquired: a slow body must not occupy one.
		if r.Method == http.MethodPost && r.ParseForm() != nil {
			s.fail(w, r, badRequest("", "The form could not be read."))
			return
		}
		p, err := s.findPage(r, at)
		if err == nil {
			err = s.servePageInSlot(w, r, p, at, v)
		}
		if errors.Is(err, busy) {
			w.Header().Set("Retry-After", "1")
		}
		if err != nil {
			s.fail(w, r, err)
		}
	}
}

// servePageInSlot serves a page in a free slot, or refuses it when all are in use.
func (s *Server) servePageInSlot(w http.ResponseWriter, r *http.Request, p pageRequest, at engine.HostedPage, v pageHandler) error {
	done, free := s.pageSlots.enter()
	if !free {
		return busy
	}
	defer done()
	p, err := s.openPage(r.Context(), p, at)
	if err != nil {
		return err
	}
	p.releaseSlot = done
	page := heldPage{ResponseWriter: w}
	if err := v(&page, r, p); err != nil {
		return err
	}
	done()
	sent, err := s.options.CountReply(p.app, int64(page.body.Len()))
	if err != nil {
		return busy
	}
	defer sent()
	return page.send()
}

// busy refuses a page while others are in progress, or are not read.
var busy = &engine.Refusal{Status: http.StatusServiceUnavailable, Message: "The payments sandbox is busy. Try again in a second."}

// heldPage keeps a page until its slot is released: a slow client must not occupy one.
type heldPage struct {
	http.ResponseWriter
	status int
	body   bytes.Buffer
}

func (h *heldPage) WriteHeader(status int)         { h.status = status }
func (h *heldPage) Write(part []byte) (int, error) { return h.body.Write(part) }

func (h *heldPage) send() error {
	h.ResponseWriter.WriteHeader(h.status)
	_, err := h.ResponseWriter.Write(h.body.Bytes())
	return err
}

// findPage finds the object of a page, before a slot is acquired: a request with an unknown
// token costs one index lookup, which Lookup bounds.
func (s *Server) findPage(r *http.Request, at engine.HostedPage) (p pageRequest, err error) {
	p.token = r.PathValue("token")
	if p.app, err = ids.Parse(ids.Application, r.PathValue("app")); err != nil {
		return p, engine.NotFound("page", "")
	}
	found := false
	if len(p.token) <= maxToken && persist.Storable(p.token) {
		found, err = s.options.Lookup(r, at.Kind+" "+p.app.String()+" "+p.token, func(ctx context.Context) (found bool, err error) {
			p.key, found, err = s.options.Accounts.Find(ctx, p.app, at.Kind, p.token, at.ByAlias)
			return found, err
		})
	}
	switch {
	case fault.Is(err, fault.Overloaded):
		return p, busy
	case err == nil && !found:
		return p, engine.NotFound("page", "")
	}
	return p, err
}

// openPage checks that the application uses the sandbox.
func (s *Server) openPage(ctx context.Context, p pageRequest, at engine.HostedPage) (pageRequest, error) {
	if p.key == "" {
		return s.convert(ctx, p, at)
	}
	return p, s.admit(ctx, p.app)
}

// convert rewrites an account that is still stored as a document as rows, and finds the
// page's object: otherwise each page request would read the whole document.
func (s *Server) convert(ctx context.Context, p pageRequest, at engine.HostedPage) (pageRequest, error) {
	err := s.update(ctx, p.app, func(*engine.Account, engine.Env) error { return nil })
	if err != nil {
		return p, err
	}
	found := false
	if p.key, found, err = s.options.Accounts.Find(ctx, p.app, at.Kind, p.token, at.ByAlias); err != nil {
		return p, err
	}
	if !found {
		return p, engine.NotFound("page", "")
	}
	return p, s.admit(ctx, p.app)
}

func (s *Server) admit(ctx context.Context, app ids.ID) error {
	admitted, err := s.options.Admits(ctx, app)
	if err == nil && !admitted {
		err = engine.NotFound("page", "")
	}
	return err
}

const (
	// maxToken is longer than any page's token.
	maxToken = 100
	// maxPageRequests is how many pages are served concurrently.
	maxPageRequests = 16
)

// gate is a semaphore that never blocks.
type gate chan struct{}

func (g gate) enter() (done func(), free bool) {
	select {
	case g <- struct{}{}:
		return sync.OnceFunc(func() { <-g }), true
	default:
		return nil, false
	}
}

// view is a templ component.
type view interface {
	Render(ctx context.Context, w io.Writer) error
}

// render renders a page to a buffer before it is sent.
func render(w http.ResponseWriter, r *http.Request, status int, v view) error {
	var body bytes.Buffer
	if err := v.Render(r.Context(), &body); err != nil {
		return err
	}
	header := w.Header()
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Content-Security-Policy", contentSecurityPolicy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	// The address is a secret, so it must not leak to other sites. "no-referrer" would
	// hide the origin of forms, and the cross-origin check would refuse them.
	header.Set("Referrer-Policy", "same-origin")
	header.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, err := w.Write(body.Bytes())
	return err
}

// fail renders an error page.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	failure := page.Failure{
		Status: http.StatusInternalServerError, Title: "Something went wrong on our end",
		Advice: "Nothing was charged. Try again.",
	}
	var refused *engine.Refusal
	switch {
	case !errors.As(err, &refused):
		s.options.Log.Error("sandbox page failed", "path", r.Pattern, "cause", err)
	case refused.Status == http.StatusNotFound:
		failure = page.Failure{
			Status: refused.Status, Title: "Page not found",
			Advice: "This link may have expired or been replaced. Request a new one.",
		}
	default:
		failure = page.Failure{Status: refused.Status, Title: "Something went wrong", Advice: refused.Message}
	}
	switch failure.Status {
	case http.StatusForbidden, http.StatusNotFound, http.StatusServiceUnavailable:
		s.options.SlowDown(r.Context()) // slows down scanners
	}
	if err := render(w, r, failure.Status, page.Error(failure)); err != nil {
		s.options.Log.Warn("sandbox error page not rendered", "cause", err)
	}
}

// redirectTime is how long a redirect waits for the webhooks of a payment, as at
// Stripe's checkout, so that the next page shows its result. Of a request with a deadline it
// is two thirds of the time left.
func redirectTime(ctx context.Context) time.Duration {
	if at, limited := ctx.Deadline(); limited {
		return time.Until(at) * 2 / 3
	}
	return 10 * time.Second
}

// redirect redirects after the webhooks of the change are applied.
func (s *Server) redirect(w http.ResponseWriter, r *http.Request, app ids.ID, url string) {
	ctx, cancel := context.WithTimeout(r.Context(), redirectTime(r.Context()))
	defer cancel()
	if err := s.drainWebhooks(ctx, app); err != nil {
		s.options.Log.Warn("sandbox webhooks not applied before redirect", "cause", err)
	}
	http.Redirect(w, r, url, http.StatusSeeOther)
}

// unknownCard is the error for a number that is no test card. It may be a real card
// number, so it is neither stored nor repeated.
const unknownCard = "Use one of the test cards below."

// chosenCard is the test card or bank account of a form.
func chosenCard(r *http.Request) (engine.Card, bool) {
	if end := r.PostFormValue("bank"); end != "" {
		return engine.BankOf(end)
	}
	return engine.CardOf(digitsOf(r.PostFormValue("card")))
}

// digitsOf removes spaces and dashes from a card number.
func digitsOf(number string) string {
	return strings.NewReplacer(" ", "", "-", "").Replace(number)
}

func testCards() (cards []pages.Card) {
	for _, c := range engine.TestCards() {
		cards = append(cards, pages.Card{Number: c.Number, Does: c.Does})
	}
	return cards
}

func testBanks() (banks []pages.Card) {
	for _, b := range engine.TestBanks() {
		banks = append(banks, pages.Card{Number: b.DebitOutcome(), Does: b.Does})
	}
	return banks
}
