package engine

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"purser/payments/sandbox/persist"
)

// The kinds of rows, the first part of their keys.
const (
	kindProduct       = "product"
	kindPrice         = "price"
	kindCustomer      = "customer"
	kindMethod        = "method"
	kindSession       = "session"
	kindChallenge     = "challenge"
	kindSubscription  = "subscription"
	kindSchedule      = "schedule"
	kindInvoice       = "invoice"
	kindIntent        = "intent"
	kindCharge        = "charge"
	kindRefund        = "refund"
	kindDispute       = "dispute"
	kindBalance       = "balance_transaction"
	kindPortal        = "portal"
	kindConfiguration = "configuration"
	kindTestClock     = "test_clock"
	kindEvent         = "event"
	kindAnswer        = "answer"
	kindDelivery      = "delivery"
	kindTimer         = "timer"
)

// prefixes map ids to kinds. A product may have another id, chosen by the caller.
var prefixes = []struct{ prefix, kind string }{
	{"price_", kindPrice}, {"cus_", kindCustomer}, {"pm_", kindMethod}, {"cs_", kindSession}, {"sub_sched_", kindSchedule},
	{"sub_", kindSubscription}, {"in_", kindInvoice}, {"pi_", kindIntent}, {"ch_", kindCharge}, {"re_", kindRefund},
	{"dp_", kindDispute}, {"cbtxn_", kindBalance}, {"bps_", kindPortal}, {"bpc_", kindConfiguration}, {"clock_", kindTestClock}, {"evt_", kindEvent},
	{"prod_", kindProduct},
}

// KeyOf returns the key of the object with the id, when the id's prefix names its kind.
func KeyOf(id string) (key string, known bool) {
	for _, p := range prefixes {
		if strings.HasPrefix(id, p.prefix) {
			return persist.Key(p.kind, id), true
		}
	}
	return "", false
}

// ProductKey is the key of a product, whose id may have any prefix.
func ProductKey(id string) string { return persist.Key(kindProduct, id) }

// AnswerKey is the key of the saved answer to an idempotent request.
func AnswerKey(idempotencyKey string) string { return persist.Key(kindAnswer, idempotencyKey) }

// HostedPage says how the object of a hosted page is found by the page's token.
type HostedPage struct {
	Kind    string
	ByAlias bool // otherwise the token is the id
}

// The hosted pages.
var (
	CheckoutPage     = HostedPage{Kind: kindSession}
	AuthenticatePage = HostedPage{Kind: kindChallenge}
	InvoicePage      = HostedPage{Kind: kindInvoice, ByAlias: true}
	PortalPage       = HostedPage{Kind: kindPortal, ByAlias: true}
)

func (h *Head) key() (string, int64)      { return h.ID, h.Nth }
func (c *Challenge) key() (string, int64) { return c.Token, 0 }
func (a *Answer) key() (string, int64)    { return a.Key, a.Nth }
func (d *Delivery) key() (string, int64)  { return d.ID, d.Nth }
func (t *Timer) key() (string, int64)     { return strconv.FormatInt(t.Nth, 10), t.Nth }

func refs[I interface{ ~string }](kind string, ids ...I) []string {
	keys := make([]string, len(ids))
	for i, id := range ids {
		keys[i] = persist.Key(kind, string(id))
	}
	return keys
}

// maxReference is the longest lookup_key or client_reference_id, in characters, as at
// Stripe. It is far below the largest entry of a Postgres index.
const maxReference = 200

func isReference(text string) bool {
	return utf8.ValidString(text) && utf8.RuneCountInString(text) <= maxReference && !strings.ContainsFunc(text, unicode.IsControl)
}

func checkReference(param, text string) error {
	if !isReference(text) {
		return invalid(param, "`%s` has at most %d characters, none of them a control character.", param, maxReference)
	}
	return nil
}

// aliasOf drops references that older releases accepted and the index cannot hold.
func aliasOf(reference string) string {
	if !isReference(reference) {
		return ""
	}
	return reference
}

func (p *Product) index() index { return index{refs: refs(kindPrice, p.DefaultPrice)} }

func (p *Price) index() index {
	return index{parent: p.Product, alias: aliasOf(p.LookupKey), refs: refs(kindProduct, p.Product)}
}

func (c *Customer) index() index {
	return index{refs: slices.Concat(refs(kindMethod, c.Method), refs(kindTestClock, c.TestClock))}
}

func (p *Method) index() index {
	return index{customer: p.Customer, refs: refs(kindCustomer, p.Customer)}
}

func (s *Session) index() index {
	i := index{customer: s.Customer, parent: s.Subscription, alias: aliasOf(s.Reference), refs: slices.Concat(
		refs(kindCustomer, s.Customer), refs(kindIntent, s.Intent), refs(kindSubscription, s.Subscription), refs(kindInvoice, s.Invoice),
	)}
	i.parent = cmp.Or(i.parent, s.Intent)
	for _, line := range s.Lines {
		i.refs = append(i.refs, refs(kindPrice, line.Price)...)
	}
	return i
}

func (c *Challenge) index() index {
	i := index{parent: c.For}
	if key, known := KeyOf(c.For); known {
		i.refs = []string{key}
	}
	return i
}

func itemRefs(items []Item) (keys []string) {
	for _, item := range items {
		keys = append(keys, refs(kindPrice, item.Price)...)
	}
	return keys
}

func lineRefs(lines []Line) (keys []string) {
	for _, line := range lines {
		keys = append(keys, refs(kindPrice, line.Price)...)
	}
	return keys
}

func (s *Subscription) index() index {
	i := index{customer: s.Customer, refs: slices.Concat(
		refs(kindCustomer, s.Customer), refs(kindMethod, s.Method), refs(kindInvoice, s.LatestInvoice), refs(kindSchedule, s.Schedule),
		itemRefs(s.Items), lineRefs(s.Prorations),
	)}
	if p := s.Pending; p != nil {
		i.refs = slices.Concat(i.refs, refs(kindInvoice, p.Invoice), itemRefs(p.Items))
	}
	if !s.ended() {
		i.liveOf = s.Customer
	}
	return i
}

func (c *Schedule) index() index {
	i := index{customer: c.Customer, refs: refs(kindSubscription, c.Subscription)}
	for _, phase := range c.Phases {
		for _, item := range phase.Items {
			i.refs = append(i.refs, refs(kindPrice, item.Price)...)
		}
	}
	return i
}

func (i *Invoice) index() index {
	x := index{customer: i.Customer, parent: i.Subscription, alias: i.Token, refs: slices.Concat(
		refs(kindCustomer, i.Customer), refs(kindSubscription, i.Subscription), refs(kindIntent, i.Intent), refs(kindCharge, i.Charge), lineRefs(i.Lines),
	)}
	if i.Status == draft || i.Status == open {
		x.liveOf = i.Subscription
	}
	return x
}

func (p *Intent) index() index {
	return index{customer: p.Customer, refs: slices.Concat(
		refs(kindCustomer, p.Customer), refs(kindInvoice, p.Invoice), refs(kindSession, p.Session), refs(kindMethod, p.Method), refs(kindCharge, p.Charge),
	)}
}

func (c *Charge) index() index {
	return index{customer: c.Customer, parent: c.Intent, refs: slices.Concat(refs(kindIntent, c.Intent), refs(kindMethod, c.Method), refs(kindInvoice, c.Invoice))}
}

func (r *Refund) index() index {
	return index{parent: r.Charge, refs: slices.Concat(refs(kindCharge, r.Charge), refs(kindIntent, r.Intent))}
}

func (d *Dispute) index() index {
	return index{parent: d.Charge, refs: refs(kindCharge, d.Charge)}
}

func (t *BalanceTransaction) index() index {
	return index{customer: t.Customer, refs: refs(kindCustomer, t.Customer)}
}

func (p *Portal) index() index {
	return index{customer: p.Customer, alias: p.Token, timed: true, due: int64(p.Created + portalLife), refs: slices.Concat(
		refs(kindCustomer, p.Customer), refs(kindConfiguration, p.Configuration),
	)}
}

func (c *Configuration) index() index { return index{} }

func (c *TestClock) index() index { return index{} }

func (e *Event) index() index { return index{timed: true, due: int64(e.Created + eventLife)} }

func (a *Answer) index() index { return index{timed: true, due: int64(a.At + answerLife)} }

func (d *Delivery) index() index {
	return index{parent: d.Event, timed: true, due: d.NotUntil, refs: refs(kindEvent, d.Event)}
}

func (t *Timer) index() index { return index{timed: true, due: t.due()} }
