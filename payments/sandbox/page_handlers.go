package sandbox

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"purser/ids"
	"purser/payments/sandbox/engine"
	"purser/payments/sandbox/pages"
	"purser/payments/sandbox/persist"
)

// checkoutPage renders the checkout, with the reason of a failed attempt.
func (s *Server) checkoutPage(w http.ResponseWriter, r *http.Request, p pageRequest, status int, reason string) error {
	seller, err := s.seller(r.Context(), p.app)
	if err != nil {
		return err
	}
	var order pages.Checkout
	err = s.view(r.Context(), p.app, func(account *engine.Account, env engine.Env) error {
		session, err := engine.Get(account.Sessions, "checkout.session", p.token)
		if err != nil {
			return err
		}
		order = pages.Checkout{
			Clock: s.clockOf(account), Seller: sellerOr(seller, account), State: session.Status, Subscribes: session.Mode == "subscription", Free: session.Free(),
			Total: pages.Amount{Minor: session.Total, Currency: session.Currency}, Expires: int64(session.Expires) * 1000,
			Reason: session.Failure, Back: session.Cancel, Cards: testCards(), Banks: testBanks(),
		}
		for _, line := range session.Lines {
			price := account.Prices.Get(line.Price)
			order.Lines = append(order.Lines, pages.Line{
				Name: line.Description, Quantity: line.Quantity, Interval: intervalOf(price),
				Amount: pages.Amount{Minor: price.Amount * line.Quantity, Currency: price.Currency},
			})
		}
		return nil
	}, p.key)
	if err != nil {
		return err
	}
	if reason != "" {
		order.Reason = reason
	}
	return render(w, r, status, pages.CheckoutPage(order))
}

// seller is the name that the pages show. It is read before the account is locked.
func (s *Server) seller(ctx context.Context, app ids.ID) (string, error) {
	if s.options.Seller == nil {
		return "", nil
	}
	return s.options.Seller(ctx, app)
}

// sellerOr falls back to the account id.
func sellerOr(name string, account *engine.Account) string {
	if name != "" {
		return name
	}
	id, _ := account.RenderAccount()["id"].(string)
	return id
}

func intervalOf(price *engine.Price) pages.Interval {
	return pages.Interval{Unit: price.Interval.Unit, Count: price.Interval.Count}
}

func (s *Server) clockOf(account *engine.Account) pages.Clock {
	return pages.Clock{Now: account.Now(s.realNow()), Moved: account.Offset != 0}
}

func (s *Server) submitCheckout(w http.ResponseWriter, r *http.Request, p pageRequest) error {
	var next engine.Step
	submit := func(account *engine.Account, env engine.Env) (err error) {
		session, err := engine.Get(account.Sessions, "checkout.session", p.token)
		if err != nil {
			return err
		}
		switch action := r.PostFormValue("action"); action {
		case "cancel":
			next.URL = session.Cancel
			return errUnchanged
		case "expire":
			_, err = account.ExpireSession(env, p.token)
			next.URL = r.URL.Path
			return err
		case "start":
			next, err = account.StartFree(env, p.token)
			return err
		}
		card, known := chosenCard(r)
		if !known {
			next.Reason = unknownCard
			return errUnchanged
		}
		next, err = account.PaySession(env, p.token, card)
		return err
	}
	return s.submitPage(w, r, p, submit, &next, s.checkoutPage)
}

// submitPage applies the form of a page and redirects, or shows the page again with the
// reason.
func (s *Server) submitPage(w http.ResponseWriter, r *http.Request, p pageRequest, change func(*engine.Account, engine.Env) error, next *engine.Step, again hostedPage) error {
	err := s.update(r.Context(), p.app, change, p.key)
	var refused *engine.Refusal
	switch {
	case errors.As(err, &refused) && refused.Status != http.StatusNotFound:
		return again(w, r, p, refused.Status, refused.Message)
	case err != nil:
		return err
	case next.Reason != "":
		return again(w, r, p, http.StatusPaymentRequired, next.Reason)
	case next.URL == "":
		// A checkout without a return URL: its page shows the result.
		next.URL = r.URL.Path
	}
	p.releaseSlot() // before waiting for webhooks
	s.redirect(w, r, p.app, next.URL)
	return nil
}

// challengePage renders a challenge that was not answered yet: an attempt leaves none.
func (s *Server) challengePage(w http.ResponseWriter, r *http.Request, p pageRequest, status int, reason string) error {
	if reason != "" {
		return &engine.Refusal{Status: status, Message: reason}
	}
	var asked pages.Challenge
	err := s.view(r.Context(), p.app, func(account *engine.Account, _ engine.Env) error {
		challenge, err := engine.Get(account.Challenges, "authentication", p.token)
		if err != nil {
			return err
		}
		asked = pages.Challenge{Clock: s.clockOf(account), Last4: challenge.Card.Last4()}
		if session := account.Sessions.Get(challenge.For); session != nil {
			asked.Amount = pages.Amount{Minor: session.Total, Currency: session.Currency}
		} else if invoice := account.Invoices.Get(challenge.For); invoice != nil {
			asked.Amount = pages.Amount{Minor: invoice.AmountDue, Currency: invoice.Currency}
		}
		return nil
	}, p.key)
	if err != nil {
		return err
	}
	return render(w, r, status, pages.ChallengePage(asked))
}

func (s *Server) submitChallenge(w http.ResponseWriter, r *http.Request, p pageRequest) error {
	var next engine.Step
	submit := func(account *engine.Account, env engine.Env) (err error) {
		switch result := r.PostFormValue("result"); result {
		case "complete", "fail":
			next, err = account.AnswerChallenge(env, p.token, result == "complete")
			return err
		}
		return badRequest("result", "The result of an authentication is complete or fail.")
	}
	return s.submitPage(w, r, p, submit, &next, s.challengePage)
}

func (s *Server) invoicePage(w http.ResponseWriter, r *http.Request, p pageRequest, status int, reason string) error {
	seller, err := s.seller(r.Context(), p.app)
	if err != nil {
		return err
	}
	var shown pages.Invoice
	err = s.view(r.Context(), p.app, func(account *engine.Account, env engine.Env) error {
		invoice, err := account.InvoiceOf(p.token)
		if err != nil {
			return err
		}
		shown = pages.Invoice{
			Clock: s.clockOf(account), Seller: sellerOr(seller, account), Back: backURL(account, env, invoice, r.URL.Query().Get(fromPortal)),
			Number: invoice.Number, State: invoice.Status, Made: int64(invoice.Created) * 1000,
			Due: pages.Amount{Minor: invoice.AmountDue, Currency: invoice.Currency}, Cards: testCards(), Banks: testBanks(),
		}
		if intent := account.Intents.Get(invoice.Intent); intent != nil {
			shown.Reason, shown.UnderWay = intent.Error.Message, intent.Status == "processing"
		}
		for _, line := range invoice.Lines {
			shown.Lines = append(shown.Lines, pages.Line{
				Name: line.Description, Amount: pages.Amount{Minor: line.Amount, Currency: invoice.Currency},
				From: int64(line.Start) * 1000, To: int64(line.End) * 1000,
			})
		}
		return nil
	}, p.key)
	if err != nil {
		return err
	}
	if reason != "" {
		shown.Reason = reason
	}
	return render(w, r, status, pages.InvoicePage(shown))
}

// fromPortal is the query parameter of an invoice page with the token of the portal
// that linked to it.
const fromPortal = "portal"

// backURL is the link back from an invoice page: the customer's portal, or the cancel
// URL of the subscription's checkout. It is empty when neither is known.
func backURL(account *engine.Account, env engine.Env, invoice *engine.Invoice, portal string) string {
	if p, err := account.PortalOf(env, portal); err == nil && p.Customer == invoice.Customer {
		return "../portal/" + url.PathEscape(p.Token)
	}
	for _, session := range account.Sessions.By(persist.ByParent, invoice.Subscription) {
		return session.Cancel
	}
	return ""
}

func (s *Server) submitInvoice(w http.ResponseWriter, r *http.Request, p pageRequest) error {
	var next engine.Step
	submit := func(account *engine.Account, env engine.Env) (err error) {
		card, known := chosenCard(r)
		if !known {
			next.Reason = unknownCard
			return errUnchanged
		}
		next, err = account.PayHosted(env, p.token, card)
		if r.URL.RawQuery != "" && strings.HasSuffix(next.URL, r.URL.Path) {
			next.URL += "?" + r.URL.RawQuery
		}
		return err
	}
	return s.submitPage(w, r, p, submit, &next, s.invoicePage)
}

// invoicesShown is how many invoices the portal shows.
const invoicesShown = 24

func (s *Server) portalPage(w http.ResponseWriter, r *http.Request, p pageRequest, status int, reason string) error {
	seller, err := s.seller(r.Context(), p.app)
	if err != nil {
		return err
	}
	shown := pages.Portal{Reason: reason, Cards: testCards()}
	err = s.view(r.Context(), p.app, func(account *engine.Account, env engine.Env) error {
		portal, err := account.PortalOf(env, p.token)
		if err != nil {
			return err
		}
		offers := account.Configurations.Get(portal.Configuration)
		shown.Clock, shown.Back, shown.ChangesCard = s.clockOf(account), portal.ReturnURL, offers.ChangesCard
		shown.Seller = sellerOr(seller, account)
		if card := account.CardOn(portal.Customer); card != nil {
			shown.Last4, shown.Bank = card.Last4, card.Bank()
		}
		if !offers.ShowsInvoices {
			return nil
		}
		invoices, _, err := engine.List(account.Invoices, engine.Page{Limit: invoicesShown}, engine.Filter[engine.Invoice]{
			Customer: portal.Customer, Keep: func(i *engine.Invoice) bool { return i.Token != "" },
		})
		for _, invoice := range invoices {
			shown.Invoices = append(shown.Invoices, pages.InvoiceRow{
				Number: invoice.Number, State: invoice.Status, Made: int64(invoice.Created) * 1000,
				Total: pages.Amount{Minor: invoice.Total, Currency: invoice.Currency},
				URL:   "../invoice/" + invoice.Token + "?" + url.Values{fromPortal: {p.token}}.Encode(), TriedAt: int64(invoice.NextAttempt) * 1000,
			})
		}
		return err
	}, p.key)
	if err != nil {
		return err
	}
	return render(w, r, status, pages.PortalPage(shown))
}

func (s *Server) submitPortal(w http.ResponseWriter, r *http.Request, p pageRequest) error {
	var next engine.Step
	submit := func(account *engine.Account, env engine.Env) error {
		portal, err := account.PortalOf(env, p.token)
		if err != nil {
			return err
		}
		card, known := engine.CardOf(digitsOf(r.PostFormValue("card")))
		if !known {
			next.Reason = unknownCard
			return errUnchanged
		}
		next, err = account.SaveCard(env, portal, card)
		return err
	}
	return s.submitPage(w, r, p, submit, &next, s.portalPage)
}
