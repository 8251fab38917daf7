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

	"purser/billing/sandbox/engine"
	"purser/billing/sandbox/persist"
	"purser/ids"
	"purser/views/page"
)

// pageRoutes is where people go. The address of a page is its secret: whoever
// was given it may use it, as at any hosted checkout.
func (s *Server) pageRoutes(mux *http.ServeMux) {
	guard := http.NewCrossOriginProtection()
	// A proxy may hide the address that browsers know.
	if base, err := url.Parse(s.options.BaseURL); err == nil && base.Host != "" {
		if err := guard.AddTrustedOrigin(base.Scheme + "://" + base.Host); err != nil {
			s.options.Log.Warn("sandbox: the public address is no origin", "cause", err)
		}
	}
	guard.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.fail(w, r, &engine.Refusal{Status: http.StatusForbidden, Message: "This form was sent from another site."})
	}))
	handle := func(path string, at engine.HostedPage, show, submit pageHandler) {
		pattern := " /sandbox/apps/{app}/" + path + "/{token}"
		mux.HandleFunc("GET"+pattern, s.servePage(at, show))
		mux.Handle("POST"+pattern, guard.Handler(s.servePage(at, submit)))
	}
	handle("checkout", engine.CheckoutPage, s.showCheckout, s.submitCheckout)
	handle("authenticate", engine.AuthenticatePage, s.showChallenge, s.submitChallenge)
	handle("invoice", engine.InvoicePage, s.showInvoice, s.submitInvoice)
	handle("portal", engine.PortalPage, s.showPortal, s.submitPortal)
	mux.HandleFunc(Prefix, func(w http.ResponseWriter, r *http.Request) { s.fail(w, r, engine.NotFound("page", "")) })
}

// pageHandler answers a person at a page of an application.
type pageHandler func(w http.ResponseWriter, r *http.Request, p pageRequest) error

// pageRequest is the page that a request is about.
type pageRequest struct {
	app         ids.ID
	token       string
	key         string // of the object that the page shows
	releaseSlot func() // leaves the gate before the request ends
}

// Nothing inline and nothing from elsewhere. A form may lead anywhere on the
// web: browsers hold the redirect after a form to this list too, and a checkout
// ends at an address of the caller's own.
const contentSecurityPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; " +
	"form-action 'self' http: https:; frame-ancestors 'none'; base-uri 'none'"

// maxPageForm is the size of the largest form that a page sends.
const maxPageForm = 4 << 10

func (s *Server) servePage(at engine.HostedPage, v pageHandler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, maxPageForm)
		// Before the gate: a body that arrives slowly holds no place there.
		if r.Method == http.MethodPost && r.ParseForm() != nil {
			s.fail(w, r, badRequest("", "The form could not be read."))
			return
		}
		if err := s.servePageInSlot(w, r, at, v); err != nil {
			s.fail(w, r, err)
		}
	}
}

// servePageInSlot answers a visit while there is room for it.
func (s *Server) servePageInSlot(w http.ResponseWriter, r *http.Request, at engine.HostedPage, v pageHandler) error {
	done, free := s.pageSlots.enter()
	if !free {
		w.Header().Set("Retry-After", "1")
		return &engine.Refusal{Status: http.StatusServiceUnavailable, Message: "The payments sandbox is busy. Try again in a second."}
	}
	defer done()
	p, err := s.findPage(r, at)
	if err != nil {
		return err
	}
	p.releaseSlot = done
	return v(w, r, p)
}

// findPage finds the object of a page. Its token is looked up before anything else: a
// request with a token that does not exist costs one read by an index.
func (s *Server) findPage(r *http.Request, at engine.HostedPage) (p pageRequest, err error) {
	p.token = r.PathValue("token")
	if p.app, err = ids.Parse(ids.Application, r.PathValue("app")); err != nil {
		return p, engine.NotFound("page", "")
	}
	found := false
	if len(p.token) <= maxToken && persist.Storable(p.token) {
		if p.key, found, err = s.options.Accounts.Find(r.Context(), p.app, at.Kind, p.token, at.ByAlias); err != nil {
			return p, err
		}
	}
	if !found {
		return p, engine.NotFound("page", "")
	}
	if p.key == "" {
		return s.convert(r.Context(), p, at)
	}
	return p, s.admit(r.Context(), p.app)
}

// convert rewrites an account that is still one document as rows, and finds the page's
// object there: otherwise each request with any token would read the whole document.
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
	// maxPageRequests is how many pages are served at once: people wait for one another only
	// where a machine floods them.
	maxPageRequests = 16
)

// gate admits a limited number of requests at a time.
type gate chan struct{}

func (g gate) enter() (done func(), free bool) {
	select {
	case g <- struct{}{}:
		return sync.OnceFunc(func() { <-g }), true
	default:
		return nil, false
	}
}

// view is anything that templ has made.
type view interface {
	Render(ctx context.Context, w io.Writer) error
}

// render sends a page that is already whole.
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
	// The address is a secret, so it is told to no other site. Not to this one
	// either would make browsers hide where a form comes from, and the guard
	// refuse it.
	header.Set("Referrer-Policy", "same-origin")
	header.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, err := w.Write(body.Bytes())
	return err
}

// fail shows a page in the place of the one that there is not.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	failure := page.Failure{
		Status: http.StatusInternalServerError, Title: "Something went wrong on our end",
		Advice: "Nothing was charged. Try again.",
	}
	var refused *engine.Refusal
	switch {
	case !errors.As(err, &refused):
		s.options.Log.Error("sandbox: a page failed", "path", r.Pattern, "cause", err)
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
		s.options.SlowDown(r.Context()) // only a person is worth an answer at once
	}
	if err := render(w, r, failure.Status, page.Error(failure)); err != nil {
		s.options.Log.Warn("sandbox: rendering a failure", "cause", err)
	}
}

// redirectTime is how long a person waits for the webhooks of a payment, as at
// Stripe's checkout, so that the page they come back to knows of it.
const redirectTime = 10 * time.Second

// redirect sends a person on.
func (s *Server) redirect(w http.ResponseWriter, r *http.Request, app ids.ID, url string) {
	ctx, cancel := context.WithTimeout(r.Context(), redirectTime)
	defer cancel()
	if err := s.drainWebhooks(ctx, app); err != nil {
		s.options.Log.Warn("sandbox: a payment's webhooks are late", "cause", err)
	}
	http.Redirect(w, r, url, http.StatusSeeOther)
}

// unknownCard is what people read who type a number that is not on the list. It
// might be a real one, so it is neither kept nor repeated.
const unknownCard = "Use one of the test cards below."

// chosenCard is the card or bank account in a form.
func chosenCard(r *http.Request) (engine.Card, bool) {
	if end := r.PostFormValue("bank"); end != "" {
		return engine.BankOf(end)
	}
	return engine.CardOf(digitsOf(r.PostFormValue("card")))
}

// digitsOf takes out what people put between the digits of a card.
func digitsOf(number string) string {
	return strings.NewReplacer(" ", "", "-", "").Replace(number)
}

func testCards() (cards []page.SandboxCard) {
	for _, c := range engine.TestCards() {
		cards = append(cards, page.SandboxCard{Number: c.Number, Does: c.Does})
	}
	return cards
}

func testBanks() (banks []page.SandboxCard) {
	for _, b := range engine.TestBanks() {
		banks = append(banks, page.SandboxCard{Number: b.DebitOutcome(), Does: b.Does})
	}
	return banks
}
