package engine

import (
	"maps"
	"net/url"
	"slices"
	"strings"
)

// Endpoint is where webhooks go.
type Endpoint struct {
	Head
	URL         string
	Types       []string // "*" stands for all
	Secret      string
	OldSecret   string // signs too, until its time is over
	OldUntil    Time
	Description string
	Metadata    map[string]string
	Outside     bool // another program's: what happens here does not wait for it
}

// NewEndpoint is what an endpoint is made from.
type NewEndpoint struct {
	URL         string
	Types       []string
	Description string
	Metadata    map[string]string
	Outside     bool
}

// maxEndpoints is Stripe's limit in test mode, here for those of other programs.
const maxEndpoints = 16

// CreateEndpoint makes an endpoint with a secret of its own.
func (w *Account) CreateEndpoint(m Clock, p NewEndpoint) (*Endpoint, error) {
	if !webAddress(p.URL) {
		return nil, invalid("url", "Invalid URL: an absolute http or https address is needed.").withCode("url_invalid")
	}
	if len(p.Types) == 0 {
		return nil, absent("enabled_events")
	}
	if p.Outside && w.outsideEndpoints() >= maxEndpoints {
		return nil, invalid("", "You have reached the maximum of %d test webhook endpoints.", maxEndpoints)
	}
	head := w.newHead(m, "we_")
	endpoint := &Endpoint{Head: head, URL: p.URL, Types: p.Types, Secret: m.token("whsec_", 32), Description: p.Description, Outside: p.Outside}
	if err := merge(&endpoint.Metadata, p.Metadata); err != nil {
		return nil, err
	}
	w.Endpoints[head.ID] = endpoint
	return endpoint, nil
}

// classifyEndpoints tells endpoints of other programs by their address. Documents do not
// say which they are.
func (w *Account) classifyEndpoints() {
	for _, endpoint := range w.Endpoints {
		endpoint.Outside = !strings.HasPrefix(endpoint.URL, w.place.Webhooks)
	}
	for _, d := range w.Deliveries.Loaded() {
		if endpoint := w.Endpoints[d.Endpoint]; endpoint != nil && endpoint.Outside && !d.Outside {
			d.Outside = true
			w.QueuedOutside++
		}
	}
}

// EndpointAt finds the endpoint with the address.
func (w *Account) EndpointAt(address string) (endpoint *Endpoint, known bool) {
	for _, endpoint := range w.endpoints() {
		if endpoint.URL == address {
			return endpoint, true
		}
	}
	return nil, false
}

// RollSecret gives the endpoint a new secret; the old one keeps signing beside
// it for the given time.
func (e *Endpoint) RollSecret(m Clock, overlap Time) {
	e.OldSecret, e.OldUntil = e.Secret, m.Now+overlap
	e.Secret = m.token("whsec_", 32)
}

func (e *Endpoint) wants(kind string) bool {
	return slices.Contains(e.Types, kind) || slices.Contains(e.Types, "*")
}

// Secrets are those that sign now, the current one first.
func (e *Endpoint) Secrets(now Time) []string {
	if e.OldSecret != "" && now < e.OldUntil {
		return []string{e.Secret, e.OldSecret}
	}
	return []string{e.Secret}
}

// endpoints lists them in the order in which they were made, so that one world
// always delivers in the same order.
func (w *Account) endpoints() []*Endpoint {
	return slices.SortedFunc(maps.Values(w.Endpoints), func(a, b *Endpoint) int { return int(a.Nth - b.Nth) })
}

// outsideEndpoints counts those of other programs.
func (w *Account) outsideEndpoints() (n int) {
	for _, endpoint := range w.Endpoints {
		if endpoint.Outside {
			n++
		}
	}
	return n
}

// webAddress reports whether a browser could be sent there.
func webAddress(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}

func (e *Endpoint) index() index { return index{} }

// EndpointTable is the endpoints as a list reads them. All are part of the account's
// head.
func (w *Account) EndpointTable() *Table[Endpoint] {
	t := &Table[Endpoint]{kind: "endpoint", w: &Account{}, slots: map[string]*slot[Endpoint]{}}
	fill(t, w.Endpoints)
	return t
}

// DeleteEndpoint takes an endpoint of another program away. What still waits for it is
// dropped when it comes due.
func (w *Account) DeleteEndpoint(id string) (Doc, error) {
	endpoint := w.Endpoints[id]
	switch {
	case endpoint == nil:
		return nil, NotFound("webhook endpoint", id)
	case !endpoint.Outside:
		return nil, invalid("id", "This endpoint is how the application itself hears of payments, and stays.")
	}
	delete(w.Endpoints, id)
	return Doc{"id": id, "object": "webhook_endpoint", "deleted": true}, nil
}
