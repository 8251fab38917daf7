package engine

import "purser/payments/sandbox/persist"

// Portal is a billing portal session of a customer.
type Portal struct {
	Head
	Token         string
	Customer      string
	Configuration string
	ReturnURL     string
	Flow          string
}

// Configuration says which features a portal offers.
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

// portalLife is how long a portal session is valid.
const portalLife = day

// maxPortals is how many portal sessions are kept; the oldest are pruned first.
const maxPortals = 10_000

// CreatePortal creates a portal session for a customer.
func (a *Account) CreatePortal(env Env, p Portal) (*Portal, error) {
	if _, err := a.customer(p.Customer); err != nil {
		return nil, err
	}
	if p.ReturnURL != "" && !isWebURL(p.ReturnURL) {
		return nil, invalid("return_url", "Not a valid URL").withCode("url_invalid")
	}
	if p.Flow != "" && p.Flow != "payment_method_update" {
		return nil, invalid("flow_data[type]", "The sandbox's portal knows the flow `payment_method_update` only.")
	}
	if p.Configuration == "" {
		p.Configuration = a.defaultConfiguration(env).ID
	}
	if _, err := find(a.Configurations, "configuration", "configuration", p.Configuration); err != nil {
		return nil, err
	}
	head := a.newHead(env, "bps_")
	p.Head, p.Token = head, env.token("", tokenLength)
	a.Portals.Put(&p)
	return &p, nil
}

// PortalOf finds a valid portal session by the token of its page.
func (a *Account) PortalOf(env Env, token string) (*Portal, error) {
	if portal := a.Portals.One(persist.ByAlias, token); portal != nil && portal.Created >= env.Now-portalLife {
		return portal, nil
	}
	return nil, NotFound("portal", token)
}

func (a *Account) CreateConfiguration(env Env, c Configuration) (*Configuration, error) {
	head := a.newHead(env, "bpc_")
	given := c.Metadata
	c.Head, c.Metadata = head, nil
	if err := mergeMetadata(&c.Metadata, given); err != nil {
		return nil, err
	}
	a.Configurations.Put(&c)
	return &c, nil
}

func (a *Account) defaultConfiguration(env Env) *Configuration {
	if c := a.Configurations.Get(a.Portal); c != nil {
		return c
	}
	c := &Configuration{Head: a.numbered(env, env.token("bpc_", idLength)), Default: true, ChangesCard: true, ShowsInvoices: true}
	a.Configurations.Put(c)
	a.Portal = c.ID
	return c
}

// SaveCard makes a card the customer's default payment method, at the portal. It does
// not authenticate: a card that requires it does so at the next charge.
func (a *Account) SaveCard(env Env, portal *Portal, card Card) (Step, error) {
	if !a.Configurations.Get(portal.Configuration).ChangesCard {
		return Step{Reason: "This portal does not let you change the card."}, nil
	}
	if test := byCard[card]; test.notSavable {
		return Step{Reason: test.decline.Message}, nil
	}
	customer, err := a.customer(portal.Customer)
	if err != nil {
		return Step{}, err
	}
	method := a.addMethod(env, customer.ID, card)
	was := a.Render(customer)
	customer.Method = method.ID
	a.emitChange(env, "customer.updated", was, customer)
	for _, s := range a.subscriptionsOf(customer.ID) {
		was := a.Render(s)
		s.Method = method.ID
		a.emitChange(env, subscriptionUpdated, was, s)
	}
	return Step{URL: a.portalURL(portal)}, nil
}
