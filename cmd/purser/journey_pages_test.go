package main

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	"purser/store/storetest"
	"purser/web"
	"purser/web/browsertest"
	"purser/web/site"
)

// What is not visited by everyPage, and why.
const (
	noDocument = "it is a file"
	outside    = "it is for visitors who are not signed in: lookFromOutside checks it"
	elsewhere  = "it cannot be opened here; another test checks it"
)

// addresses says for each path of the dashboard that can be opened where there is
// something to see. A new page is listed here, or the test fails.
func (p place) addresses(s samples) map[string]string {
	const app = "/o/:org/a/:app"
	return map[string]string{
		"/":                                outside,
		"/setup/:token":                    elsewhere, // firstRun
		"/login":                           outside,
		"/login/code":                      outside,
		"/forgot":                          outside,
		"/reset/:token":                    elsewhere, // its link is in a mail
		"/invite/:token":                   outside,
		"/confirm":                         p.base + "/confirm",
		"/account":                         p.base + "/account",
		"/account/factor":                  p.base + "/account/factor",
		"/account/password":                p.base + "/account/password",
		"/o":                               p.base + "/o",
		"/o/new":                           p.base + "/o/new",
		"/o/:org":                          p.base + "/o/acme",
		"/o/:org/a/new":                    p.base + "/o/acme/a/new",
		"/o/:org/settings":                 p.base + "/o/acme/settings",
		"/o/:org/settings/archive":         p.base + "/o/acme/settings/archive",
		"/o/:org/members":                  p.base + "/o/acme/members",
		"/o/:org/members/invite":           p.base + "/o/acme/members/invite",
		"/o/:org/members/:user":            s.member,
		"/o/:org/audit":                    p.base + "/o/acme/audit",
		"/o/:org/audit.csv":                noDocument,
		app:                                p.app,
		app + "/search":                    p.app + "/search?q=ada",
		app + "/wallets":                   p.app + "/wallets",
		app + "/wallets/new":               p.app + "/wallets/new",
		app + "/wallets/:id":               s.wallet,
		app + "/wallets/:id/deposit":       s.wallet + "/deposit?credit=tokens&amount=5",
		app + "/wallets/:id/checkout":      s.wallet + "/checkout",
		app + "/wallets/:id/topup":         s.wallet + "/topup",
		app + "/wallets/:id/change":        s.wallet + "/change?plan=small",
		app + "/wallets/:id/usage":         s.wallet + "/usage",
		app + "/wallets/:id/denials":       s.wallet + "/denials",
		app + "/wallets/:id/deposits":      s.wallet + "/deposits",
		app + "/wallets/:id/subscription":  s.wallet + "/subscription",
		app + "/wallets/:id/adjust":        s.wallet + "/adjust",
		app + "/wallets/:id/transfer":      s.wallet + "/transfer",
		app + "/wallets/:id/rename":        s.wallet + "/rename",
		app + "/wallets/:id/erase":         s.wallet + "/erase",
		app + "/wallets/:id/notifications": s.wallet + "/notifications",
		app + "/transactions/:id":          s.transaction,
		app + "/transactions/:id/reverse":  s.transaction + "/reverse",
		app + "/transactions/:id/refund":   s.topUp + "/refund",
		app + "/check":                     p.app + "/check?identity=ada&feature=messages&quantity=1",
		app + "/denials":                   p.app + "/denials",
		app + "/denials/:id":               s.denial,
		app + "/events":                    p.app + "/events",
		app + "/usage":                     p.app + "/usage?range=month&compare=before",
		app + "/usage.csv":                 noDocument,
		app + "/deposits":                  p.app + "/deposits",
		app + "/deposits.csv":              noDocument,
		app + "/events.csv":                noDocument,
		app + "/subscriptions.csv":         noDocument,
		app + "/checkouts.csv":             noDocument,
		app + "/wallets/:id/journal.csv":   noDocument,
		app + "/wallets/:id/export.json":   noDocument,
		app + "/subscriptions":             p.app + "/subscriptions",
		app + "/checkouts":                 p.app + "/checkouts",
		app + "/alerts":                    p.app + "/alerts",
		app + "/jobs":                      p.app + "/jobs",
		app + "/requests":                  p.app + "/requests",
		app + "/requests/:id":              s.request,
		app + "/quickstart":                p.app + "/quickstart?language=python",
		app + "/credits":                   p.app + "/credits",
		app + "/credits/new":               p.app + "/credits/new",
		app + "/credits/:key/edit":         p.app + "/credits/tokens/edit",
		app + "/features":                  p.app + "/features",
		app + "/features/new":              p.app + "/features/new",
		app + "/features/:key/edit":        p.app + "/features/messages/edit",
		app + "/plans":                     p.app + "/plans",
		app + "/plans/new":                 p.app + "/plans/new",
		app + "/plans/:key/view":           p.app + "/plans/small/view",
		app + "/plans/:key/edit":           p.app + "/plans/small/edit",
		app + "/catalog/copy":              p.app + "/catalog/copy",
		app + "/keys":                      p.app + "/keys",
		app + "/keys/new":                  p.app + "/keys/new",
		app + "/keys/:key":                 p.app + "/keys/" + p.made.KeyID,
		app + "/sandbox":                   p.app + "/sandbox",
		app + "/settings":                  p.app + "/settings",
		app + "/settings/archive":          p.app + "/settings/archive",
		app + "/settings/alerts":           p.app + "/settings/alerts",
		app + "/settings/alerts/new":       p.app + "/settings/alerts/new?kind=allowance",
		app + "/settings/alerts/:key/edit": p.app + "/settings/alerts/low/edit",
		app + "/webhooks":                  p.app + "/webhooks?language=go",
		app + "/webhooks/new":              p.app + "/webhooks/new",
		app + "/webhooks/:id":              s.endpoint,
		app + "/webhooks/:id/edit":         s.endpoint + "/edit",
		app + "/notifications":             p.app + "/notifications",
		app + "/notifications/:id":         s.notification,
		"/docs":                            p.base + "/docs",
		"/docs/search":                     p.base + "/docs/search?q=wallet",
		"/docs/changelog":                  p.base + "/docs/changelog",
		"/docs/clients/:client":            noDocument,
		"/docs/reference":                  p.base + "/docs/reference",
		"/docs/reference/:group":           p.base + "/docs/reference/plans",
		"/docs/notifications":              p.base + "/docs/notifications",
		"/docs/errors":                     p.base + "/docs/errors",
		"/docs/errors/:code":               p.base + "/docs/errors/insufficient_balance",
		"/docs/:guide":                     p.base + "/docs/usage",
		"/apple-touch-icon.png":            noDocument,
		"/favicon.ico":                     noDocument,
		"/robots.txt":                      noDocument,
		"/site.webmanifest":                noDocument,
		"/llms.txt":                        noDocument,
		"/llms-full.txt":                   noDocument,
		"/static/*":                        noDocument,
	}
}

// samples are addresses that hold the id of something.
type samples struct{ wallet, transaction, topUp, denial, request, member, endpoint, notification string }

// everyPage goes over the route table, in several widths and both themes.
func everyPage(t *testing.T, p product) {
	at, owner := p.settle(t, "Pages"), p.enter(t, browsertest.Desktop)
	addresses := at.addresses(at.furnish(owner))
	paths := openable(t)
	for _, path := range paths {
		if addresses[path] == "" {
			t.Errorf("the page %s is new: list where it is checked", path)
		}
	}
	for path := range addresses {
		if !slices.Contains(paths, path) {
			t.Errorf("the page %s is gone", path)
		}
	}
	t.Run("from outside", func(t *testing.T) { p.lookFromOutside(t, owner) })
	tabs := owner.Several(t)
	for path, address := range addresses {
		if address == noDocument || address == outside || address == elsewhere {
			continue
		}
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			lookOver(t, tabs.Take(t), address)
		})
	}
}

// lookOver opens a page and holds it to what every page has to hold.
func lookOver(t *testing.T, tab *browsertest.Tab, address string) {
	t.Helper()
	if status := visit(tab, address); status != http.StatusOK || tab.Address() != address {
		t.Errorf("%s leads to %s with %d", address, tab.Address(), status)
	}
	look(t, tab)
}

// widths are those on which a page that was looked over is measured again.
var widths = []browsertest.Screen{
	{Name: "wide", Width: 1440, Height: 900}, {Name: "laptop", Width: 1024, Height: 768}, {Name: "tablet", Width: 768, Height: 1024}, browsertest.Phone,
}

// look is for a page that is open. What the browser complains of fails the test by
// itself.
func look(t *testing.T, tab *browsertest.Tab) {
	t.Helper()
	if csp := tab.Header("Content-Security-Policy"); !strings.HasPrefix(csp, "default-src 'none'") || strings.Contains(csp, "unsafe") {
		t.Errorf("%s: the policy is %q", tab.Address(), csp)
	}
	tab.CheckScreens([]browsertest.Screen{browsertest.Desktop, browsertest.PhoneDark}, func(screen browsertest.Screen) {
		if screen == browsertest.Desktop {
			tab.CheckFrames()
		}
	})
	tab.On(widths, func(browsertest.Screen) {
		tab.CheckWidth()
		tab.CheckFrames()
	})
}

// openable lists the paths of the dashboard that have a page.
func openable(t *testing.T) (paths []string) {
	t.Helper()
	e := echo.New()
	web.New(web.Options{Options: site.Options{Store: storetest.Open(t)}}).Register(e)
	for _, route := range e.Routes() {
		if route.Method == http.MethodGet && route.Name != site.ParentRedirect {
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
	event := p.use("0199d1c7-6c1e-7b61-b9ad-6a4fd1f2a001", hostile)
	p.call(http.MethodPost, "/v1/events", `{"id": "refused", "identity": "ada", "feature": "messages"}`, http.StatusConflict)
	p.topUp("ada", "open")
	bought, err := http.DefaultTransport.RoundTrip(formPost(p.T, p.topUp("ada", "paid"), "card=4242424242424242"))
	if err != nil {
		p.Fatal(err)
	}
	bought.Body.Close()

	endpoint := p.call(http.MethodPost, "/v1/webhook-endpoints", `{"url": "http://127.0.0.1:1024/hooks", "description": "Order system"}`, http.StatusCreated)
	s.endpoint = fmt.Sprintf("%s/webhooks/%s", p.app, endpoint["id"])
	sent := p.call(http.MethodPost, fmt.Sprintf("/v1/webhook-endpoints/%s/test", endpoint["id"]), `{"type": "balance.low"}`, http.StatusAccepted)
	s.notification = fmt.Sprintf("%s/notifications/%s", p.app, sent["notificationId"])
	p.call(http.MethodPut, "/v1/alert-rules/low", `{"kind": "balance", "creditKey": "tokens", "thresholdsNanocredits": ["1000000000"]}`, http.StatusOK)

	s.transaction = fmt.Sprintf("%s/transactions/%s", p.app, event["transactionId"])
	s.wallet = fmt.Sprintf("%s/wallets/%s", p.app, p.call(http.MethodGet, "/v1/wallets/ada", "", http.StatusOK)["id"])
	p.product.invite(p.T, owner, "pat@example.com", `document.querySelector("[name=role][value=admin]").click()`)
	eventually(p.T, "the top-up is credited", func() bool {
		owner.Visit(s.wallet)
		s.topUp = owner.Evaluate(`[...document.querySelectorAll("main tbody tr")].find((row) => row.textContent.includes("Top-up"))?.querySelector("a[href*='/transactions/']").href ?? ""`)
		return s.topUp != ""
	})
	owner.Visit(p.app + "/denials")
	s.denial = owner.Evaluate(`document.querySelector("a[href*='/denials/dny_']").href`)
	owner.Visit(p.app + "/requests?show=failed")
	s.request = owner.Evaluate(`document.querySelector("a[href*='/requests/req_']").href`)
	owner.Visit(p.base + "/o/acme/members")
	s.member = owner.Evaluate(`document.querySelector("a[href*='/members/usr_']").href`)
	return s
}
