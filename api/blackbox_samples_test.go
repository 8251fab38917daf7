package api_test

import (
	"slices"

	"purser/api"
	"purser/fault"
)

// names are what a request can call an application's things by.
type names struct {
	app          string
	credit       string
	feature      string
	plan         string
	identity     string
	charged      string // another identity, with a balance and events
	event        string
	endpoint     string
	notification string
	cursors      map[string]string // by list
}

// outcome is how a request ends. A success has no code.
type outcome struct {
	status int
	code   fault.Code
}

func refusedWith(code fault.Code) outcome { return outcome{statuses[fault.New(code).Kind()], code} }

var (
	found    = outcome{status: 200}
	made     = outcome{status: 201}
	accepted = outcome{status: 202}
	invalid  = refusedWith(fault.InvalidRequest)
)

// sample is a request of an operation that names things of an application: those
// of the key's own, or those of another, which must be as if they did not exist.
type sample struct {
	operation string
	request   func(own, named names) request
	own       outcome
	other     outcome
	makes     bool // other's name becomes one of our own, so its answers differ by ids
}

// samples are in an order in which none spoils a later one: what makes things
// under a name of another application comes last.
var samples = []sample{
	{operation: "getOpenapi", own: found, other: found, request: func(_, _ names) request { return reads("/v1/openapi.json") }},
	{operation: "getApplication", own: found, other: invalid, request: func(own, named names) request {
		if own.app == named.app {
			return reads("/v1/application")
		}
		return reads("/v1/application?appId=" + named.app)
	}},
	{operation: "listCredits", own: found, other: invalid, request: func(_, named names) request {
		return reads("/v1/credits?cursor=" + named.cursors["credits"])
	}},
	{operation: "listFeatures", own: found, other: invalid, request: func(_, named names) request {
		return reads("/v1/features?cursor=" + named.cursors["features"])
	}},
	{operation: "listPlans", own: found, other: invalid, request: func(_, named names) request {
		return reads("/v1/plans?cursor=" + named.cursors["plans"])
	}},
	{operation: "listWallets", own: found, other: invalid, request: func(_, named names) request {
		return reads("/v1/wallets?cursor=" + named.cursors["wallets"])
	}},
	{operation: "listDeposits", own: found, other: found, request: func(_, named names) request {
		return reads("/v1/deposits?identity=" + named.identity)
	}},
	{operation: "listDeposits", own: found, other: refusedWith(fault.CreditNotFound), request: func(own, named names) request {
		return reads("/v1/deposits?identity=" + own.identity + "&creditKey=" + named.credit)
	}},
	{operation: "listDeposits", own: found, other: invalid, request: func(own, named names) request {
		return reads("/v1/deposits?identity=" + own.identity + "&cursor=" + named.cursors["deposits"])
	}},
	{operation: "getCredit", own: found, other: refusedWith(fault.CreditNotFound), request: func(_, named names) request {
		return reads("/v1/credits/" + named.credit)
	}},
	{operation: "listAlertRules", own: found, other: invalid, request: func(own, named names) request {
		if own.app == named.app {
			return reads("/v1/alert-rules")
		}
		return reads("/v1/alert-rules?appId=" + named.app)
	}},
	// A rule has the key of the credit that it watches.
	{operation: "getAlertRule", own: found, other: refusedWith(fault.AlertRuleNotFound), request: func(_, named names) request {
		return reads("/v1/alert-rules/" + named.credit)
	}},
	{operation: "putAlertRule", own: found, other: refusedWith(fault.CreditNotFound), request: func(own, named names) request {
		return request{method: "PUT", target: "/v1/alert-rules/" + own.credit, body: fields{"kind": "balance", "creditKey": named.credit, "thresholdsNanocredits": []string{"1"}}}
	}},
	{operation: "putAlertRule", own: found, other: refusedWith(fault.FeatureNotFound), request: func(own, named names) request {
		return request{method: "PUT", target: "/v1/alert-rules/" + own.credit, body: fields{"kind": "allowance", "featureKey": named.feature, "thresholdsPercent": []int{80}}}
	}},
	{operation: "deleteAlertRule", own: found, other: refusedWith(fault.AlertRuleNotFound), request: func(_, named names) request {
		return request{method: "DELETE", target: "/v1/alert-rules/" + named.credit}
	}},
	{operation: "getCatalog", own: found, other: invalid, request: func(own, named names) request {
		if own.app == named.app {
			return reads("/v1/catalog")
		}
		return reads("/v1/catalog?appId=" + named.app)
	}},
	{operation: "previewCatalog", own: found, other: found, request: func(_, named names) request {
		return adds("/v1/catalog/preview", fields{"catalog": catalogOf(fields{"key": named.credit, "name": "Gold", "unit": "coin"})})
	}},
	{operation: "applyCatalog", own: refusedWith(fault.CatalogChanged), other: refusedWith(fault.CatalogChanged), request: func(_, named names) request {
		return adds("/v1/catalog/apply", fields{"expectedVersion": noVersion, "catalog": catalogOf(fields{"key": named.credit, "name": "Gold", "unit": "coin"})})
	}},
	{operation: "getFeature", own: found, other: refusedWith(fault.FeatureNotFound), request: func(_, named names) request {
		return reads("/v1/features/" + named.feature)
	}},
	{operation: "getPlan", own: found, other: refusedWith(fault.PlanNotFound), request: func(_, named names) request {
		return reads("/v1/plans/" + named.plan)
	}},
	{operation: "getWallet", own: found, other: refusedWith(fault.WalletNotFound), request: func(_, named names) request {
		return reads("/v1/wallets/" + named.identity)
	}},
	{operation: "getSubscription", own: found, other: found, request: func(_, named names) request {
		return reads("/v1/subscriptions/" + named.identity)
	}},
	{operation: "changeSubscription", own: refusedWith(fault.SubscriptionNotFound), other: refusedWith(fault.PlanNotFound), request: func(own, named names) request {
		return adds("/v1/subscriptions/"+own.identity+"/change", fields{"planKey": named.plan, "idempotencyKey": newName()})
	}},
	{operation: "previewSubscriptionChange", own: found, other: refusedWith(fault.PlanNotFound), request: func(own, named names) request {
		return adds("/v1/subscriptions/"+own.identity+"/preview-change", fields{"planKey": named.plan})
	}},
	{operation: "previewSubscriptionChange", own: found, other: found, request: func(own, named names) request {
		return adds("/v1/subscriptions/"+named.identity+"/preview-change", fields{"planKey": own.plan})
	}},
	{operation: "cancelSubscription", own: refusedWith(fault.SubscriptionNotFound), other: refusedWith(fault.SubscriptionNotFound), request: func(_, named names) request {
		return adds("/v1/subscriptions/"+named.identity+"/cancel", fields{"cancelAtPeriodEnd": true, "idempotencyKey": newName()})
	}},
	{operation: "createSubscriptionCheckout", own: found, other: refusedWith(fault.PlanNotFound), request: func(own, named names) request {
		return adds("/v1/subscription-checkout", newSubscriptionCheckout(own.identity, named.plan))
	}},
	{operation: "createTopupCheckout", own: found, other: refusedWith(fault.CreditNotFound), request: func(own, named names) request {
		return adds("/v1/topup-checkout", newTopup(own.identity, named.credit))
	}},
	{operation: "updateCredit", own: found, other: refusedWith(fault.CreditNotFound), request: func(_, named names) request {
		return changes("/v1/credits/"+named.credit, fields{"name": "New"})
	}},
	{operation: "updateFeature", own: found, other: refusedWith(fault.FeatureNotFound), request: func(_, named names) request {
		return changes("/v1/features/"+named.feature, fields{"name": "New"})
	}},
	{operation: "updateFeature", own: found, other: refusedWith(fault.CreditNotFound), request: func(own, named names) request {
		return changes("/v1/features/"+own.feature, fields{"creditKey": named.credit})
	}},
	{operation: "updatePlan", own: found, other: refusedWith(fault.PlanNotFound), request: func(_, named names) request {
		return changes("/v1/plans/"+named.plan, fields{"name": "New"})
	}},
	{operation: "updatePlan", own: found, other: refusedWith(fault.CreditNotFound), request: func(own, named names) request {
		return changes("/v1/plans/"+own.plan, fields{"creditGrants": []fields{{"creditKey": named.credit, "amountNanocredits": "1"}}})
	}},
	{operation: "updatePlan", own: found, other: refusedWith(fault.FeatureNotFound), request: func(own, named names) request {
		return changes("/v1/plans/"+own.plan, fields{"featureMultipliers": []fields{{"featureKey": named.feature, "basisPoints": 10000}}})
	}},
	{operation: "createPlan", own: made, other: refusedWith(fault.FeatureNotFound), request: func(_, named names) request {
		return adds("/v1/plans", newPlan("p-"+newName(), fields{"featureLimits": []fields{{"featureKey": named.feature, "limit": 1}}}))
	}},
	{operation: "setBillingPeriod", own: found, other: refusedWith(fault.WalletNotFound), request: func(_, named names) request {
		return changes("/v1/wallets/"+named.identity+"/billing-period", period("day", 0))
	}},
	{operation: "getBalances", own: found, other: refusedWith(fault.WalletNotFound), request: func(_, named names) request {
		return reads("/v1/wallets/" + named.identity + "/balances?at=1")
	}},
	{operation: "listJournal", own: found, other: refusedWith(fault.WalletNotFound), request: func(_, named names) request {
		return reads("/v1/wallets/" + named.identity + "/journal")
	}},
	{operation: "listJournal", own: found, other: refusedWith(fault.CreditNotFound), request: func(own, named names) request {
		return reads("/v1/wallets/" + own.identity + "/journal?creditKey=" + named.credit)
	}},
	{operation: "listJournal", own: found, other: invalid, request: func(own, named names) request {
		return reads("/v1/wallets/" + own.identity + "/journal?cursor=" + named.cursors["journal"])
	}},
	{operation: "getEvent", own: found, other: refusedWith(fault.EventNotFound), request: func(_, named names) request {
		return reads("/v1/events/" + named.event)
	}},
	{operation: "listEvents", own: found, other: found, request: func(_, named names) request {
		return reads("/v1/events?identity=" + named.identity)
	}},
	{operation: "listEvents", own: found, other: refusedWith(fault.FeatureNotFound), request: func(_, named names) request {
		return reads("/v1/events?feature=" + named.feature)
	}},
	{operation: "listEvents", own: found, other: invalid, request: func(_, named names) request {
		return reads("/v1/events?cursor=" + named.cursors["events"])
	}},
	{operation: "getUsage", own: found, other: refusedWith(fault.WalletNotFound), request: func(_, named names) request {
		return reads("/v1/usage?from=1&to=2&identity=" + named.identity)
	}},
	{operation: "getUsage", own: found, other: refusedWith(fault.FeatureNotFound), request: func(_, named names) request {
		return reads("/v1/usage?from=1&to=2&groupBy=identity&feature=" + named.feature)
	}},
	{operation: "reverseEvent", own: made, other: refusedWith(fault.EventNotFound), request: func(_, named names) request {
		return adds("/v1/events/"+named.event+"/reverse", newReversal("1"))
	}},
	{operation: "listNotifications", own: found, other: found, request: func(_, named names) request {
		return reads("/v1/notifications?limit=1&identity=" + named.identity)
	}},
	{operation: "getNotification", own: found, other: refusedWith(fault.NotificationNotFound), request: func(_, named names) request {
		return reads("/v1/notifications/" + named.notification)
	}},
	{operation: "listDeliveryAttempts", own: found, other: refusedWith(fault.NotificationNotFound), request: func(_, named names) request {
		return reads("/v1/notifications/" + named.notification + "/attempts")
	}},
	{operation: "redeliverNotification", own: accepted, other: refusedWith(fault.NotificationNotFound), request: func(own, named names) request {
		return adds("/v1/notifications/"+named.notification+"/redeliver", fields{"endpointId": own.endpoint})
	}},
	{operation: "redeliverNotification", own: accepted, other: refusedWith(fault.WebhookEndpointNotFound), request: func(own, named names) request {
		return adds("/v1/notifications/"+own.notification+"/redeliver", fields{"endpointId": named.endpoint})
	}},
	{operation: "listWebhookEndpoints", own: found, other: invalid, request: func(own, named names) request {
		if own.app == named.app {
			return reads("/v1/webhook-endpoints")
		}
		return reads("/v1/webhook-endpoints?appId=" + named.app)
	}},
	{operation: "getWebhookEndpoint", own: found, other: refusedWith(fault.WebhookEndpointNotFound), request: func(_, named names) request {
		return reads("/v1/webhook-endpoints/" + named.endpoint)
	}},
	{operation: "updateWebhookEndpoint", own: found, other: refusedWith(fault.WebhookEndpointNotFound), request: func(_, named names) request {
		return changes("/v1/webhook-endpoints/"+named.endpoint, fields{"description": "New"})
	}},
	{operation: "rotateWebhookSecret", own: found, other: refusedWith(fault.WebhookEndpointNotFound), request: func(_, named names) request {
		return adds("/v1/webhook-endpoints/"+named.endpoint+"/rotate-secret", fields{})
	}},
	{operation: "testWebhookEndpoint", own: accepted, other: refusedWith(fault.WebhookEndpointNotFound), request: func(_, named names) request {
		return adds("/v1/webhook-endpoints/"+named.endpoint+"/test", fields{"type": "key.revoked"})
	}},
	{operation: "replayWebhooks", own: accepted, other: refusedWith(fault.WebhookEndpointNotFound), request: func(_, named names) request {
		return adds("/v1/webhook-endpoints/"+named.endpoint+"/replay", fields{"fromSeq": 1, "only": "failed"})
	}},
	{operation: "deleteWebhookEndpoint", own: found, other: refusedWith(fault.WebhookEndpointNotFound), request: func(_, named names) request {
		return request{method: "DELETE", target: "/v1/webhook-endpoints/" + named.endpoint}
	}},
	{operation: "createWebhookEndpoint", own: made, other: invalid, request: func(own, named names) request {
		if own.app == named.app {
			return adds("/v1/webhook-endpoints", newEndpoint())
		}
		return adds("/v1/webhook-endpoints?appId="+named.app, newEndpoint())
	}},
	{operation: "explainUsage", own: found, other: refusedWith(fault.FeatureNotFound), request: func(own, named names) request {
		return adds("/v1/explain", fields{"identity": own.identity, "feature": named.feature})
	}},
	{operation: "explainUsage", own: found, other: found, request: func(own, named names) request {
		return adds("/v1/explain", fields{"identity": named.identity, "feature": own.feature})
	}},
	{operation: "checkUsage", own: found, other: refusedWith(fault.FeatureNotFound), request: func(own, named names) request {
		return adds("/v1/check", fields{"identity": own.identity, "feature": named.feature})
	}},
	{operation: "checkUsage", own: found, other: found, request: func(own, named names) request {
		return adds("/v1/check", fields{"identity": named.identity, "feature": own.feature})
	}},
	{operation: "trackUsage", own: made, other: refusedWith(fault.FeatureNotFound), request: func(own, named names) request {
		return adds("/v1/events", fields{"id": newName(), "identity": own.identity, "feature": named.feature})
	}},
	{operation: "trackUsage", own: made, other: refusedWith(fault.InsufficientBalance), request: func(own, named names) request {
		return adds("/v1/events", fields{"id": newName(), "identity": named.identity, "feature": own.feature})
	}},
	{operation: "trackGroup", own: made, other: refusedWith(fault.FeatureNotFound), request: func(own, named names) request {
		return adds("/v1/events/group", fields{"identity": own.identity, "events": []fields{{"id": newName(), "feature": named.feature}}})
	}},
	{operation: "trackGroup", own: made, other: refusedWith(fault.InsufficientBalance), request: func(own, named names) request {
		return adds("/v1/events/group", fields{"identity": named.identity, "events": []fields{{"id": newName(), "feature": own.feature}}})
	}},
	{operation: "trackBatch", own: found, other: found, makes: true, request: func(own, named names) request {
		return adds("/v1/events/batch", fields{"events": []fields{
			{"id": newName(), "identity": named.identity, "feature": own.feature}, {"id": newName(), "identity": own.identity, "feature": named.feature},
		}})
	}},
	{operation: "createFeature", own: made, other: refusedWith(fault.CreditNotFound), request: func(_, named names) request {
		return adds("/v1/features", newFeature("f-"+newName(), fields{"creditKey": named.credit}))
	}},
	{operation: "createDeposit", own: made, other: refusedWith(fault.CreditNotFound), request: func(own, named names) request {
		return adds("/v1/deposits", newDeposit(own.identity, named.credit))
	}},
	{operation: "exportWallet", own: found, other: refusedWith(fault.WalletNotFound), request: func(_, named names) request {
		return reads("/v1/wallets/" + named.identity + "/export")
	}},
	{operation: "eraseWallet", own: refusedWith(fault.InvalidRequest), other: refusedWith(fault.InvalidRequest), request: func(_, named names) request {
		return adds("/v1/wallets/"+named.identity+"/erase", fields{"reason": "for " + named.identity, "idempotencyKey": newName()})
	}},
	{operation: "eraseWallet", own: refusedWith(fault.WalletNotFound), other: refusedWith(fault.WalletNotFound), request: func(_, _ names) request {
		return adds("/v1/wallets/unknown-holder/erase", fields{"reason": "asked", "idempotencyKey": newName()})
	}},
	{operation: "renameWallet", own: refusedWith(fault.IdentityTaken), other: refusedWith(fault.WalletNotFound), request: func(own, named names) request {
		return adds("/v1/wallets/"+named.identity+"/rename", fields{"identity": own.charged, "idempotencyKey": newName()})
	}},
	{operation: "createTransfer", own: made, other: refusedWith(fault.WalletNotFound), request: func(own, named names) request {
		return adds("/v1/transfers", newTransfer(own.charged, named.identity, own.credit))
	}},
	{operation: "createTransfer", own: made, other: refusedWith(fault.WalletNotFound), request: func(own, named names) request {
		return adds("/v1/transfers", newTransfer(named.charged, own.identity, own.credit))
	}},
	{operation: "createTransfer", own: made, other: refusedWith(fault.CreditNotFound), request: func(own, named names) request {
		return adds("/v1/transfers", newTransfer(own.charged, own.identity, named.credit))
	}},
	{operation: "createBillingPortal", own: found, other: refusedWith(fault.WalletNotFound), request: func(_, named names) request {
		return adds("/v1/billing-portal", fields{"identity": named.identity, "returnUrl": "https://shop.test/account"})
	}},
	{operation: "createWallet", own: found, other: made, makes: true, request: func(_, named names) request {
		return adds("/v1/wallets", fields{"identity": named.identity})
	}},
	{operation: "createDeposit", own: made, other: made, makes: true, request: func(own, named names) request {
		return adds("/v1/deposits", newDeposit(named.identity, own.credit))
	}},
	{operation: "createFeature", own: refusedWith(fault.AlreadyExists), other: made, makes: true, request: func(own, named names) request {
		return adds("/v1/features", newFeature(named.feature, fields{"creditKey": own.credit}))
	}},
	{operation: "createPlan", own: refusedWith(fault.AlreadyExists), other: made, makes: true, request: func(_, named names) request {
		return adds("/v1/plans", newPlan(named.plan, nil))
	}},
	{operation: "createCredit", own: refusedWith(fault.AlreadyExists), other: made, makes: true, request: func(_, named names) request {
		return adds("/v1/credits", fields{"key": named.credit, "name": "Gold", "unit": "coin"})
	}},
}

func newReversal(amount string) fields {
	return fields{"amountNanocredits": amount, "reason": "The answer was empty", "idempotencyKey": newName()}
}

func newTransfer(from, to, credit string) fields {
	return fields{"from": from, "to": to, "creditKey": credit, "amountNanocredits": "1", "reason": "Left the team", "idempotencyKey": newName()}
}

func reads(target string) request { return request{method: "GET", target: target} }

func adds(target string, body fields) request {
	return request{method: "POST", target: target, body: body}
}

func changes(target string, body fields) request {
	return request{method: "PATCH", target: target, body: body}
}

func newDeposit(identity, credit string) fields {
	return fields{"identity": identity, "creditKey": credit, "amountNanocredits": "1", "idempotencyKey": newName()}
}

func hasSample(op api.Operation) bool {
	return slices.ContainsFunc(samples, func(s sample) bool { return s.operation == op.ID })
}
