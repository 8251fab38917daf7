package engine

import (
	"maps"
	"net/url"
	"slices"
	"strings"
)

type Endpoint struct {
	Head
	URL         string
	Types       []string // "*" means all
	Secret      string   // in clear: release 0.1.0 signs with it, also beside this one
	Description string
	Metadata    map[string]string
	Outside     bool // of another program: payments do not wait for its deliveries
}

type NewEndpoint struct {
	URL         string
	Types       []string
	Description string
	Metadata    map[string]string
	Outside     bool
}

// maxEndpoints is Stripe's limit in test mode. Only endpoints of other programs count.
const maxEndpoints = 16

// CreateEndpoint creates an endpoint with its own signing secret.
func (a *Account) CreateEndpoint(env Env, p NewEndpoint) (*Endpoint, error) {
	if !isWebURL(p.URL) {
		return nil, invalid("url", "Invalid URL: an absolute http or https address is needed.").withCode("url_invalid")
	}
	if len(p.Types) == 0 {
		return nil, missingParam("enabled_events")
	}
	if p.Outside && a.outsideEndpoints() >= maxEndpoints {
		return nil, invalid("", "You have reached the maximum of %d test webhook endpoints.", maxEndpoints)
	}
	head := a.newHead(env, "we_")
	endpoint := &Endpoint{Head: head, URL: p.URL, Types: p.Types, Secret: env.token("whsec_", 32), Description: p.Description, Outside: p.Outside}
	if err := mergeMetadata(&endpoint.Metadata, p.Metadata); err != nil {
		return nil, err
	}
	a.Endpoints[head.ID] = endpoint
	return endpoint, nil
}

// classifyEndpoints sets Outside by the endpoint's address, because legacy documents do
// not record it.
func (a *Account) classifyEndpoints() {
	for _, endpoint := range a.Endpoints {
		endpoint.Outside = !strings.HasPrefix(endpoint.URL, a.urls.Webhooks)
	}
	for _, d := range a.Deliveries.Loaded() {
		if endpoint := a.Endpoints[d.Endpoint]; endpoint != nil && endpoint.Outside && !d.Outside {
			d.Outside = true
			a.QueuedOutside++
		}
	}
}

// EndpointAt finds the endpoint with the URL.
func (a *Account) EndpointAt(address string) (endpoint *Endpoint, known bool) {
	for _, endpoint := range a.endpoints() {
		if endpoint.URL == address {
			return endpoint, true
		}
	}
	return nil, false
}

func (e *Endpoint) wants(kind string) bool {
	return slices.Contains(e.Types, kind) || slices.Contains(e.Types, "*")
}

// endpoints lists the endpoints in order of creation, so that deliveries have a
// deterministic order.
func (a *Account) endpoints() []*Endpoint {
	return slices.SortedFunc(maps.Values(a.Endpoints), func(a, b *Endpoint) int { return int(a.Nth - b.Nth) })
}

// outsideEndpoints counts the endpoints of other programs.
func (a *Account) outsideEndpoints() (n int) {
	for _, endpoint := range a.Endpoints {
		if endpoint.Outside {
			n++
		}
	}
	return n
}

// isWebURL reports whether text is an http or https URL.
func isWebURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}

func (e *Endpoint) index() index { return index{} }

// EndpointTable is a table of the endpoints, which are stored in the account's head.
func (a *Account) EndpointTable() *Table[Endpoint] {
	t := &Table[Endpoint]{kind: "endpoint", account: &Account{}, slots: map[string]*slot[Endpoint]{}}
	fill(t, a.Endpoints)
	return t
}

// DeleteEndpoint deletes an endpoint of another program. Its queued deliveries are
// dropped when they are due.
func (a *Account) DeleteEndpoint(id string) (Doc, error) {
	endpoint := a.Endpoints[id]
	switch {
	case endpoint == nil:
		return nil, NotFound("webhook endpoint", id)
	case !endpoint.Outside:
		return nil, invalid("id", "The application itself receives its payment events at this endpoint, so it can't be deleted.")
	}
	delete(a.Endpoints, id)
	return Doc{"id": id, "object": "webhook_endpoint", "deleted": true}, nil
}
