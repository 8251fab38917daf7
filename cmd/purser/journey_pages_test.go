package main

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	"purser/store/storetest"
	"purser/web"
	"purser/web/browsertest"
)

// What is not visited by everyPage, and why.
const (
	noDocument = "it is a file"
	elsewhere  = "it cannot be opened here; another test looks it over"
)

// addresses says for each path of the dashboard that can be opened where there is
// something to see. A new page is listed here, or the test fails.
func (p place) addresses(s samples) map[string]string {
	const app = "/o/:org/a/:app"
	return map[string]string{
		"/":                               elsewhere, // the start of who is signed out
		"/setup/:token":                   elsewhere, // firstRun
		"/login":                          elsewhere,
		"/login/code":                     elsewhere, // it needs an authenticator
		"/invite/:token":                  elsewhere, // the page of who is signed out
		"/confirm":                        p.base + "/confirm",
		"/account":                        p.base + "/account",
		"/account/factor":                 p.base + "/account/factor",
		"/o":                              p.base + "/o",
		"/o/new":                          p.base + "/o/new",
		"/o/:org":                         p.base + "/o/acme",
		"/o/:org/a/new":                   p.base + "/o/acme/a/new",
		"/o/:org/settings":                p.base + "/o/acme/settings",
		"/o/:org/members":                 p.base + "/o/acme/members",
		"/o/:org/members/invite":          p.base + "/o/acme/members/invite",
		"/o/:org/members/:user":           s.member,
		"/o/:org/audit":                   p.base + "/o/acme/audit",
		"/o/:org/audit.csv":               noDocument,
		app:                               p.app,
		app + "/wallets":                  p.app + "/wallets",
		app + "/wallets/:id":              s.wallet,
		app + "/wallets/:id/usage":        s.wallet + "/usage",
		app + "/wallets/:id/deposits":     s.wallet + "/deposits",
		app + "/wallets/:id/subscription": s.wallet + "/subscription",
		app + "/wallets/:id/adjust":       s.wallet + "/adjust",
		app + "/transactions/:id":         s.transaction,
		app + "/check":                    p.app + "/check?identity=ada&feature=messages&quantity=1",
		app + "/events":                   p.app + "/events",
		app + "/deposits":                 p.app + "/deposits",
		app + "/deposits.csv":             noDocument,
		app + "/subscriptions":            p.app + "/subscriptions",
		app + "/checkouts":                p.app + "/checkouts",
		app + "/alerts":                   p.app + "/alerts",
		app + "/requests":                 p.app + "/requests",
		app + "/quickstart":               p.app + "/quickstart?language=python",
		app + "/credits":                  p.app + "/credits",
		app + "/credits/new":              p.app + "/credits/new",
		app + "/credits/:key/edit":        p.app + "/credits/tokens/edit",
		app + "/features":                 p.app + "/features",
		app + "/features/new":             p.app + "/features/new",
		app + "/features/:key/edit":       p.app + "/features/messages/edit",
		app + "/plans":                    p.app + "/plans",
		app + "/plans/new":                p.app + "/plans/new",
		app + "/plans/:key/edit":          p.app + "/plans/small/edit",
		app + "/keys":                     p.app + "/keys",
		app + "/keys/new":                 p.app + "/keys/new",
		app + "/keys/:key":                p.app + "/keys/" + p.made.KeyID,
		app + "/settings":                 p.app + "/settings",
		"/docs":                           p.base + "/docs",
		"/docs/reference":                 p.base + "/docs/reference",
		"/docs/reference/:group":          p.base + "/docs/reference/plans",
		"/docs/errors":                    p.base + "/docs/errors",
		"/docs/errors/:code":              p.base + "/docs/errors/insufficient_balance",
		"/docs/:guide":                    p.base + "/docs/usage",
		"/llms.txt":                       noDocument,
		"/llms-full.txt":                  noDocument,
		"/static/*":                       noDocument,
	}
}

// samples are addresses that hold the id of something.
type samples struct{ wallet, transaction, member string }

// everyPage goes over the route table, in two widths and both themes.
func everyPage(t *testing.T, p product) {
	at, owner := p.settle(t, "Pages"), p.enter(t, browsertest.Desktop)
	addresses := at.addresses(at.furnish(owner))
	for _, path := range openable(t) {
		if addresses[path] == "" {
			t.Errorf("the page %s is new: list where it is looked over", path)
		}
	}
	for path, address := range addresses {
		if !slices.Contains(openable(t), path) {
			t.Errorf("the page %s is gone", path)
		}
		if address == noDocument || address == elsewhere {
			delete(addresses, path)
		}
	}
	for _, width := range []browsertest.Screen{browsertest.Desktop, browsertest.Phone} {
		t.Run("at "+width.Name, func(t *testing.T) {
			t.Parallel()
			tab := owner.Beside(t, width)
			for _, path := range slices.Sorted(maps.Keys(addresses)) {
				if status := tab.Visit(addresses[path]); status != http.StatusOK || tab.Address() != addresses[path] {
					t.Errorf("%s leads to %s with %d", path, tab.Address(), status)
				}
				if csp := tab.Header("Content-Security-Policy"); !strings.HasPrefix(csp, "default-src 'none'") || strings.Contains(csp, "unsafe") {
					t.Errorf("%s: the policy is %q", path, csp)
				}
				tab.CheckThemes()
				tab.Picture(strings.NewReplacer("/", "-", ":", "").Replace("page"+path) + "-" + width.Name)
			}
			stranger := browsertest.Open(t, width)
			for _, path := range []string{"/", "/login"} {
				stranger.Visit(p.base + path)
				stranger.CheckThemes()
			}
		})
	}
}

// openable lists the paths that the dashboard answers to somebody who opens them.
func openable(t *testing.T) (paths []string) {
	t.Helper()
	e := echo.New()
	web.New(web.Options{Store: storetest.Open(t)}).Register(e)
	for _, route := range e.Routes() {
		if route.Method == http.MethodGet {
			paths = append(paths, route.Path)
		}
	}
	if len(paths) == 0 {
		t.Fatal("there are no pages")
	}
	return paths
}

// furnish gives every page something to show.
func (p place) furnish(owner *browsertest.Tab) (s samples) {
	p.Helper()
	p.stock()
	p.sell("small", 500, 1)
	paid, err := http.DefaultTransport.RoundTrip(formPost(p.T, p.checkout("ada", "small"), "card=4242424242424242"))
	if err != nil {
		p.Fatal(err)
	}
	paid.Body.Close()
	p.fund("ada", 10)
	p.use("included", "ada")
	p.fund(hostile, 10)
	event := p.use("charged", hostile)
	p.call(http.MethodPost, "/v1/events", `{"id": "refused", "identity": "ada", "feature": "messages"}`, http.StatusConflict)
	p.topUp("ada", "open")

	s.transaction = fmt.Sprintf("%s/transactions/%s", p.app, event["transactionId"])
	s.wallet = fmt.Sprintf("%s/wallets/%s", p.app, p.call(http.MethodGet, "/v1/wallets/ada", "", http.StatusOK)["id"])
	p.product.invite(p.T, owner, "pat@example.com", `document.querySelector("[name=role][value=admin]").click()`)
	owner.Visit(p.base + "/o/acme/members")
	s.member = owner.Evaluate(`document.querySelector("a[href*='/members/usr_']").href`)
	return s
}
