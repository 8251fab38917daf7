package support

import (
	"errors"
	"net/url"
	"strings"

	"purser/fault"
	"purser/ids"
	"purser/store"
	"purser/store/payments"
	"purser/store/reports"
	"purser/tenancy"
	"purser/views/layout"
	supportpage "purser/views/page/support"
	"purser/web/site"
)

const (
	// shownCustomers and shownPages are how many results of a kind a search shows.
	shownCustomers = 8
	shownPages     = 8
	maxSearch      = 200 // characters, the longest identity
)

// search finds customers, objects by their id, pages and actions. A search that was sent
// from the dialog goes straight to its only result.
func (s *Pages) search(req *site.Request) (site.Response, error) {
	text := site.Shorten(req.Query("q"), maxSearch)
	view := supportpage.Search{Path: req.AppPath("search"), Query: text, Docs: "/docs/search?" + url.Values{"q": {text}}.Encode()}
	view.Pages = searchedPages(req, text)
	if text != "" {
		hits, object, err := searchIDs(req, text)
		if err != nil {
			return site.Response{}, err
		}
		view.IDs = hits
		// An object's id is hardly a part of an identity, which takes long to look for.
		found, next, err := req.Reports().SearchWallets(req.Context, reports.WalletSearch{Text: text, Begins: object, Page: store.Page{Limit: shownCustomers}})
		if err != nil {
			return site.Response{}, err
		}
		for _, w := range found {
			hit := supportpage.Hit{Href: req.WalletPath(w.ID), Icon: "wallet", Identity: w.Identity}
			if w.Subscription != nil && req.May(tenancy.SubscriptionsRead) {
				hit.Hint = w.Subscription.PlanName
			}
			view.Customers = append(view.Customers, hit)
		}
		if next != nil {
			view.More = req.CustomerLink(text)
		}
	}
	if req.Query("go") != "" && !req.IsHTMX() {
		if target := onlyHit(view); target != "" {
			return site.Redirect(target), nil
		}
	}
	view.Frame = req.Frame("Search", "")
	view.Frame.Search = "" // this page is the dialog
	return site.Show(supportpage.SearchPage(view)), nil
}

// onlyHit is the address of the one thing that was found, or "".
func onlyHit(s supportpage.Search) string {
	all := append(append(append([]supportpage.Hit{}, s.IDs...), s.Customers...), s.Pages...)
	switch {
	case len(s.IDs) == 1:
		return s.IDs[0].Href
	case len(all) == 1 && s.More == "":
		return all[0].Href
	case len(s.Customers) > 0 && s.Customers[0].Identity == s.Query:
		return s.Customers[0].Href
	}
	return ""
}

// searchIDs finds what an id names, as far as the member may see it, and whether that is an
// object of ours. Callers choose the ids of events.
func searchIDs(req *site.Request, text string) (hits []supportpage.Hit, object bool, err error) {
	prefix, _, _ := strings.Cut(text, "_")
	for _, kind := range searchedKinds {
		if kind.prefix != prefix || !req.May(kind.needs) {
			continue
		}
		id, err := ids.Parse(kind.prefix, text)
		if err != nil {
			continue
		}
		hit, err := kind.find(req, id)
		if err != nil && !isMissing(err) {
			return nil, false, err
		}
		if err == nil {
			hits, object = append(hits, hit), true
		}
	}
	if !req.May(tenancy.JournalRead) {
		return hits, object, nil
	}
	events, _, err := req.Reports().Events(req.Context, reports.EventQuery{EventID: text})
	for _, e := range events {
		hits = append(hits, supportpage.Hit{Href: req.TransactionPath(e.TransactionID), Icon: "activity", Label: "Event " + e.FeatureKey, Hint: e.Identity})
	}
	return hits, object, err
}

// isMissing reports that an id names nothing of this application.
func isMissing(err error) bool {
	f, ok := errors.AsType[*fault.Fault](err)
	return ok && f.Kind() == fault.NotFound || errors.Is(err, payments.ErrUnknown)
}

// searchedKinds are the kinds of ids that the search knows.
var searchedKinds = []struct {
	prefix string
	needs  tenancy.Permission
	find   func(*site.Request, ids.ID) (supportpage.Hit, error)
}{
	{ids.Wallet, tenancy.WalletsRead, func(req *site.Request, id ids.ID) (supportpage.Hit, error) {
		w, err := req.Reports().WalletByID(req.Context, id)
		return supportpage.Hit{Href: req.WalletPath(id), Icon: "wallet", Identity: w.Identity}, err
	}},
	{ids.Transaction, tenancy.JournalRead, findTransaction},
	{ids.Deposit, tenancy.JournalRead, findTransaction},
	{ids.Request, tenancy.RequestsRead, func(req *site.Request, id ids.ID) (supportpage.Hit, error) {
		return supportpage.Hit{Href: requestPath(req, id), Icon: "scroll-text", Label: "Request", Hint: id.Format(ids.Request)}, nil
	}},
	{ids.Denial, tenancy.JournalRead, func(req *site.Request, id ids.ID) (supportpage.Hit, error) {
		d, err := req.Reports().Denial(req.Context, id)
		return supportpage.Hit{Href: req.AppPath("denials", id.Format(ids.Denial)), Icon: "circle-x", Label: "Denial " + d.FeatureKey, Hint: d.Identity}, err
	}},
	{ids.Checkout, tenancy.SubscriptionsRead, func(req *site.Request, id ids.ID) (supportpage.Hit, error) {
		c, err := req.Payments().CheckoutByID(req.Context, id)
		return supportpage.Hit{Href: site.Listing{Path: req.AppPath("checkouts")}.At("identity", c.Identity), Icon: "shopping-cart", Label: "Checkout", Hint: c.Identity}, err
	}},
	{ids.Subscription, tenancy.SubscriptionsRead, func(req *site.Request, id ids.ID) (supportpage.Hit, error) {
		wallet, err := req.Reports().SubscriptionWallet(req.Context, id)
		return supportpage.Hit{Href: req.WalletPath(wallet) + "/subscription", Icon: "repeat", Label: "Subscription"}, err
	}},
	{ids.Notification, tenancy.NotificationsRead, func(req *site.Request, id ids.ID) (supportpage.Hit, error) {
		n, err := req.Notifications().Notification(req.Context, id)
		return supportpage.Hit{Href: req.NotificationPath(id), Icon: "bell", Label: "Notification " + string(n.Type), Hint: n.Identity}, err
	}},
	{ids.WebhookEndpoint, tenancy.NotificationsRead, func(req *site.Request, id ids.ID) (supportpage.Hit, error) {
		e, err := req.Notifications().Endpoint(req.Context, id)
		return supportpage.Hit{Href: req.EndpointPath(id), Icon: "webhook", Label: "Webhook endpoint", Hint: e.URL}, err
	}},
	{ids.APIKey, tenancy.KeysRead, func(req *site.Request, id ids.ID) (supportpage.Hit, error) {
		key, err := req.Tenant().Key(req.Context, id)
		return supportpage.Hit{Href: req.AppPath("keys", id.Format(ids.APIKey)), Icon: "key-round", Label: "API key", Hint: key.Name}, err
	}},
}

// findTransaction finds any change of a balance. Deposits share its id under another
// prefix.
func findTransaction(req *site.Request, id ids.ID) (supportpage.Hit, error) {
	t, err := req.Reports().Transaction(req.Context, id)
	return supportpage.Hit{Href: req.TransactionPath(id), Icon: "banknote", Label: "Transaction", Hint: t.Identity}, err
}

// searchedPages are the pages and actions whose name has every word of the text.
func searchedPages(req *site.Request, text string) (hits []supportpage.Hit) {
	words := strings.Fields(strings.ToLower(text))
	matches := func(label string) bool {
		for _, word := range words {
			if !strings.Contains(strings.ToLower(label), word) {
				return false
			}
		}
		return true
	}
	add := func(label, href, icon string) {
		if len(hits) < shownPages && matches(label) {
			hits = append(hits, supportpage.Hit{Href: href, Icon: icon, Label: label})
		}
	}
	for _, nav := range [][]layout.NavGroup{layout.AppNav(req.AppPath(), req.Member.Permissions()), layout.OrgNav(req.OrgPath(), req.Member.Permissions())} {
		for _, group := range nav {
			for _, item := range group.Items {
				add(item.Label, item.Href, item.Icon)
			}
		}
	}
	for _, action := range searchedActions {
		if req.May(action.needs) && !(action.inOrg && req.Org.IsArchived()) {
			if action.inOrg {
				add(action.label, req.OrgPath(action.path...), action.icon)
			} else {
				add(action.label, req.AppPath(action.path...), action.icon)
			}
		}
	}
	return hits
}

// searchedActions are the actions that the search offers.
var searchedActions = []struct {
	label string
	needs tenancy.Permission
	icon  string
	path  []string
	inOrg bool
}{
	{label: "Run a check", needs: tenancy.JournalRead, icon: "circle-question-mark", path: []string{"check"}},
	{label: "New wallet", needs: tenancy.WalletsWrite, icon: "plus", path: []string{"wallets", "new"}},
	{label: "Create API key", needs: tenancy.KeysWrite, icon: "plus", path: []string{"keys", "new"}},
	{label: "Create webhook endpoint", needs: tenancy.WebhooksWrite, icon: "plus", path: []string{"webhooks", "new"}},
	{label: "Create credit", needs: tenancy.CreditsWrite, icon: "plus", path: []string{"credits", "new"}},
	{label: "Create feature", needs: tenancy.FeaturesWrite, icon: "plus", path: []string{"features", "new"}},
	{label: "Create plan", needs: tenancy.PlansWrite, icon: "plus", path: []string{"plans", "new"}},
	{label: "Review payment issues", needs: tenancy.SubscriptionsRead, icon: "triangle-alert", path: []string{"alerts"}},
	{label: "View failing jobs", needs: tenancy.SubscriptionsRead, icon: "refresh-cw", path: []string{"jobs"}},
	{label: "Invite member", needs: tenancy.MembersWrite, icon: "users", path: []string{"members", "invite"}, inOrg: true},
	{label: "Create application", needs: tenancy.AppsWrite, icon: "plus", path: []string{"a", "new"}, inOrg: true},
}
