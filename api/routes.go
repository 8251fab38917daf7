package api

import (
	"net/http"

	"purser/fault"
	"purser/ids"
	"purser/tenancy"
)

// route is one operation. A test compares the table with the document.
type route struct {
	method      string
	path        string              // with {name} for a parameter, as in the document
	permissions tenancy.Permissions // all of them
	handle      func(*call) (reply, error)
	usage       bool // events and checks: the transaction compares the key, so a cached key is enough
	streamed    bool // takes as long as the client reads
	catalog     bool // of the whole catalog, which takes much memory
}

// routes lists all operations that require a key.
func (s *Server) routes() []route {
	return []route{
		get("/v1/application", tenancy.CreditsRead, s.getApplication),

		post("/v1/credits", tenancy.CreditsWrite, s.createCredit),
		get("/v1/credits", tenancy.CreditsRead, s.listCredits),
		get("/v1/credits/{key}", tenancy.CreditsRead, s.getCredit),
		patch("/v1/credits/{key}", tenancy.CreditsWrite, s.updateCredit),

		put("/v1/alert-rules/{key}", tenancy.CreditsWrite, s.putAlertRule),
		get("/v1/alert-rules", tenancy.CreditsRead, s.listAlertRules),
		get("/v1/alert-rules/{key}", tenancy.CreditsRead, s.getAlertRule),
		remove("/v1/alert-rules/{key}", tenancy.CreditsWrite, s.deleteAlertRule),

		post("/v1/features", tenancy.FeaturesWrite, s.createFeature),
		get("/v1/features", tenancy.FeaturesRead, s.listFeatures),
		get("/v1/features/{key}", tenancy.FeaturesRead, s.getFeature),
		patch("/v1/features/{key}", tenancy.FeaturesWrite, s.updateFeature),

		post("/v1/plans", tenancy.PlansWrite, s.createPlan),
		get("/v1/plans", tenancy.PlansRead, s.listPlans),
		get("/v1/plans/{key}", tenancy.PlansRead, s.getPlan),
		patch("/v1/plans/{key}", tenancy.PlansWrite, s.updatePlan),

		also(tenancy.FeaturesRead, also(tenancy.PlansRead, wholeCatalog(get("/v1/catalog", tenancy.CreditsRead, s.getCatalog)))),
		also(tenancy.FeaturesRead, also(tenancy.PlansRead, wholeCatalog(post("/v1/catalog/preview", tenancy.CreditsRead, s.previewCatalog)))),
		also(tenancy.FeaturesWrite, also(tenancy.PlansWrite, wholeCatalog(post("/v1/catalog/apply", tenancy.CreditsWrite, s.applyCatalog)))),

		get("/v1/subscriptions/{identity}", tenancy.SubscriptionsRead, s.getSubscription),
		post("/v1/subscriptions/{identity}/change", tenancy.SubscriptionsWrite, s.changeSubscription),
		post("/v1/subscriptions/{identity}/preview-change", tenancy.SubscriptionsRead, s.previewSubscriptionChange),
		post("/v1/subscriptions/{identity}/cancel", tenancy.SubscriptionsWrite, s.cancelSubscription),
		post("/v1/subscription-checkout", tenancy.SubscriptionsWrite, s.createSubscriptionCheckout),
		post("/v1/topup-checkout", tenancy.SubscriptionsWrite, s.createTopupCheckout),
		post("/v1/billing-portal", tenancy.SubscriptionsWrite, s.createBillingPortal),

		post("/v1/wallets", tenancy.WalletsWrite, s.createWallet),
		get("/v1/wallets", tenancy.WalletsRead, s.listWallets),
		get("/v1/wallets/{identity}", tenancy.WalletsRead, s.getWallet),
		get("/v1/wallets/{identity}/balances", tenancy.WalletsRead, s.getBalances),
		get("/v1/wallets/{identity}/journal", tenancy.JournalRead, s.listJournal),
		streamed(also(tenancy.JournalRead, get("/v1/wallets/{identity}/export", tenancy.WalletsWrite, s.exportWallet))),
		patch("/v1/wallets/{identity}/billing-period", tenancy.WalletsWrite, s.setBillingPeriod),
		post("/v1/wallets/{identity}/rename", tenancy.WalletsWrite, s.renameWallet),
		post(erasePath, tenancy.WalletsErase, s.eraseWallet),

		post("/v1/deposits", tenancy.DepositsWrite, s.createDeposit),
		get("/v1/deposits", tenancy.DepositsRead, s.listDeposits),

		post("/v1/transfers", tenancy.WalletsTransfer, s.createTransfer),

		usage(post("/v1/check", tenancy.EventsIngest, s.checkUsage)),
		usage(post("/v1/events", tenancy.EventsIngest, s.trackUsage)),
		usage(post("/v1/events/batch", tenancy.EventsIngest, s.trackBatch)),
		usage(post("/v1/events/group", tenancy.EventsIngest, s.trackGroup)),
		also(tenancy.JournalRead, post("/v1/explain", tenancy.EventsIngest, s.explainUsage)),
		get("/v1/usage", tenancy.JournalRead, s.getUsage),
		get("/v1/events", tenancy.JournalRead, s.listEvents),
		get("/v1/events/{id}", tenancy.JournalRead, s.getEvent),
		post("/v1/events/{id}/reverse", tenancy.EventsReverse, s.reverseEvent),

		get("/v1/notifications", tenancy.NotificationsRead, s.listNotifications),
		get("/v1/notifications/{id}", tenancy.NotificationsRead, ofNotification(s.getNotification)),
		get("/v1/notifications/{id}/attempts", tenancy.NotificationsRead, ofNotification(s.listDeliveryAttempts)),
		post("/v1/notifications/{id}/redeliver", tenancy.WebhooksWrite, ofNotification(s.redeliverNotification)),

		post("/v1/webhook-endpoints", tenancy.WebhooksWrite, s.createWebhookEndpoint),
		get("/v1/webhook-endpoints", tenancy.NotificationsRead, s.listWebhookEndpoints),
		get("/v1/webhook-endpoints/{id}", tenancy.NotificationsRead, ofEndpoint(s.getWebhookEndpoint)),
		patch("/v1/webhook-endpoints/{id}", tenancy.WebhooksWrite, ofEndpoint(s.updateWebhookEndpoint)),
		remove("/v1/webhook-endpoints/{id}", tenancy.WebhooksWrite, ofEndpoint(s.deleteWebhookEndpoint)),
		post("/v1/webhook-endpoints/{id}/rotate-secret", tenancy.WebhooksWrite, ofEndpoint(s.rotateWebhookSecret)),
		post("/v1/webhook-endpoints/{id}/test", tenancy.WebhooksWrite, ofEndpoint(s.testWebhookEndpoint)),
		post("/v1/webhook-endpoints/{id}/replay", tenancy.WebhooksWrite, ofEndpoint(s.replayWebhooks)),
	}
}

// Constructors of routes, by method.
var (
	get    = routesBy(http.MethodGet)
	post   = routesBy(http.MethodPost)
	put    = routesBy(http.MethodPut)
	patch  = routesBy(http.MethodPatch)
	remove = routesBy(http.MethodDelete)
)

func routesBy(method string) func(path string, p tenancy.Permission, handle func(*call) (reply, error)) route {
	return func(path string, p tenancy.Permission, handle func(*call) (reply, error)) route {
		return route{method: method, path: path, permissions: tenancy.PermissionsOf(p), handle: handle}
	}
}

func ofEndpoint(handle func(*call, ids.ID) (reply, error)) func(*call) (reply, error) {
	return ofID(ids.WebhookEndpoint, fault.WebhookEndpointNotFound, handle)
}

func ofNotification(handle func(*call, ids.ID) (reply, error)) func(*call) (reply, error) {
	return ofID(ids.Notification, fault.NotificationNotFound, handle)
}

// ofID reads the id in the path. The document's pattern lets only ids through.
func ofID(prefix string, missing fault.Code, handle func(*call, ids.ID) (reply, error)) func(*call) (reply, error) {
	return func(c *call) (reply, error) {
		id, err := ids.Parse(prefix, c.path["id"])
		if err != nil {
			return reply{}, fault.New(missing)
		}
		return handle(c, id)
	}
}

// also requires another permission.
func also(p tenancy.Permission, r route) route {
	r.permissions = r.permissions.With(p)
	return r
}

func wholeCatalog(r route) route {
	r.catalog = true
	return r
}

func streamed(r route) route {
	r.streamed = true
	return r
}

func usage(r route) route {
	r.usage = true
	return r
}
