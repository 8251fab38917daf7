package web

import "purser/tenancy"

// developerRoutes are the pages that connect an application to programs.
func (s *Site) developerRoutes() []route {
	const app = appPrefix
	return []route{
		get(app+"/quickstart", tenancy.WalletsRead, s.quickstart),

		get(app+"/keys", tenancy.KeysRead, s.keys),
		reauth(get(app+"/keys/new", tenancy.KeysWrite, s.newKey)),
		reauth(post(app+"/keys/new", tenancy.KeysWrite, s.createKey)),
		get(app+"/keys/{key}", tenancy.KeysRead, s.key),
		reauth(post(app+"/keys/{key}/rotate", tenancy.KeysWrite, s.rotateKey)),
		post(app+"/keys/{key}/revoke", tenancy.KeysWrite, s.revokeKey),

		get(app+"/sandbox", tenancy.SubscriptionsWrite, s.sandboxPanel),
		post(app+"/sandbox/clock", tenancy.SubscriptionsWrite, s.advanceSandbox),
		post(app+"/sandbox/refund", tenancy.SubscriptionsWrite, s.refundInSandbox),
		post(app+"/sandbox/dispute", tenancy.SubscriptionsWrite, s.disputeInSandbox),
		post(app+"/sandbox/webhooks", tenancy.SubscriptionsWrite, s.sandboxWebhooks),

		get(app+"/settings", tenancy.SettingsWrite, s.settings),
		post(app+"/settings", tenancy.SettingsWrite, s.updateSettings),
		reauth(post(app+"/settings/provider", tenancy.SettingsWrite, s.connectProvider)),
		post(app+"/settings/revoke-keys", tenancy.KeysWrite, s.revokeKeys),

		get(app+"/webhooks", tenancy.NotificationsRead, s.endpoints),
		reauth(get(app+"/webhooks/new", tenancy.WebhooksWrite, s.newEndpoint)),
		reauth(post(app+"/webhooks/new", tenancy.WebhooksWrite, s.createEndpoint)),
		get(app+"/webhooks/{id}", tenancy.NotificationsRead, s.endpoint),
		get(app+"/webhooks/{id}/edit", tenancy.WebhooksWrite, s.editEndpoint),
		post(app+"/webhooks/{id}/edit", tenancy.WebhooksWrite, s.updateEndpoint),
		post(app+"/webhooks/{id}/status", tenancy.WebhooksWrite, s.switchEndpoint),
		post(app+"/webhooks/{id}/test", tenancy.WebhooksWrite, s.testEndpoint),
		post(app+"/webhooks/{id}/replay", tenancy.WebhooksWrite, s.replayEndpoint),
		reauth(post(app+"/webhooks/{id}/rotate", tenancy.WebhooksWrite, s.rotateEndpoint)),
		post(app+"/webhooks/{id}/delete", tenancy.WebhooksWrite, s.deleteEndpoint),

		get(app+"/notifications", tenancy.NotificationsRead, s.feed),
		get(app+"/notifications/{id}", tenancy.NotificationsRead, s.notification),
		post(app+"/notifications/{id}/redeliver", tenancy.WebhooksWrite, s.redeliver),

		get(app+"/settings/alerts", tenancy.CreditsRead, s.alertRules),
		get(app+"/settings/alerts/new", tenancy.CreditsWrite, s.newAlertRule),
		post(app+"/settings/alerts/new", tenancy.CreditsWrite, s.createAlertRule),
		get(app+"/settings/alerts/{key}/edit", tenancy.CreditsWrite, s.editAlertRule),
		post(app+"/settings/alerts/{key}/edit", tenancy.CreditsWrite, s.updateAlertRule),
		post(app+"/settings/alerts/{key}/delete", tenancy.CreditsWrite, s.deleteAlertRule),
	}
}
