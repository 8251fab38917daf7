package engine

import "purser/billing/sandbox/persist"

// Portal is a customer's visit to the page where cards are changed.
type Portal struct {
	Head
	Token         string
	Customer      string
	Configuration string
	ReturnURL     string
	Flow          string
}

// Configuration says what a portal lets customers do.
type Configuration struct {
	Head
	Default        bool
	Headline       string
	ReturnURL      string
	ChangesCard    bool
	ShowsInvoices  bool
	CancelsOwn     bool
	ChangesOwn     bool
	ChangesAddress bool
	Metadata       map[string]string
}

// portalLife is how long a visit may last.
const portalLife = day

// maxPortals bounds how many visits of a day are kept; the oldest go first.
const maxPortals = 10_000

// CreatePortal opens the portal for a customer.
func (w *Account) CreatePortal(m Clock, p Portal) (*Portal, error) {
	if _, err := w.customer(p.Customer); err != nil {
		return nil, err
	}
	if p.ReturnURL != "" && !webAddress(p.ReturnURL) {
		return nil, invalid("return_url", "Not a valid URL").withCode("url_invalid")
	}
	if p.Flow != "" && p.Flow != "payment_method_update" {
		return nil, invalid("flow_data[type]", "The sandbox's portal knows the flow `payment_method_update` only.")
	}
	if p.Configuration == "" {
		p.Configuration = w.defaultConfiguration(m).ID
	}
	if _, err := find(w.Configurations, "configuration", "configuration", p.Configuration); err != nil {
		return nil, err
	}
	head := w.newHead(m, "bps_")
	p.Head, p.Token = head, m.token("", tokenLength)
	w.Portals.Put(&p)
	return &p, nil
}

// PortalOf finds a visit by the token of its page, while it lasts.
func (w *Account) PortalOf(m Clock, token string) (*Portal, error) {
	if portal := w.Portals.One(persist.ByAlias, token); portal != nil && portal.Created >= m.Now-portalLife {
		return portal, nil
	}
	return nil, NotFound("portal", token)
}

// CreateConfiguration keeps what portals made with it will offer.
func (w *Account) CreateConfiguration(m Clock, c Configuration) (*Configuration, error) {
	head := w.newHead(m, "bpc_")
	given := c.Metadata
	c.Head, c.Metadata = head, nil
	if err := merge(&c.Metadata, given); err != nil {
		return nil, err
	}
	w.Configurations.Put(&c)
	return &c, nil
}

func (w *Account) defaultConfiguration(m Clock) *Configuration {
	if c := w.Configurations.Get(w.Portal); c != nil {
		return c
	}
	c := &Configuration{Head: w.numbered(m, m.token("bpc_", idLength)), Default: true, ChangesCard: true, ShowsInvoices: true}
	w.Configurations.Put(c)
	w.Portal = c.ID
	return c
}

// SaveCard makes a card the customer's own for all that is charged from now on,
// at the portal. The bank is not asked: a card that wants authentication asks
// with the first charge.
func (w *Account) SaveCard(m Clock, portal *Portal, card Card) (Step, error) {
	if !w.Configurations.Get(portal.Configuration).ChangesCard {
		return Step{Reason: "This portal does not let you change the card."}, nil
	}
	if test := byCard[card]; test.unsaved {
		return Step{Reason: test.decline.Message}, nil
	}
	customer, err := w.customer(portal.Customer)
	if err != nil {
		return Step{}, err
	}
	method := w.addMethod(m, customer.ID, card)
	was := w.Render(customer)
	customer.Method = method.ID
	w.emitChange(m, "customer.updated", was, customer)
	for _, s := range w.subscriptionsOf(customer.ID) {
		was := w.Render(s)
		s.Method = method.ID
		w.emitChange(m, subscriptionUpdated, was, s)
	}
	return Step{URL: w.portalURL(portal)}, nil
}
