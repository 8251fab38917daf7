package developers

import (
	"purser/ids"
	"purser/tenancy"
	"purser/web/site"
)

// Routes are the pages that connect an application to programs.
func (s *Pages) Routes() []site.Route {
	const app = site.AppPrefix
	return []site.Route{
		site.Get(app+"/quickstart", tenancy.WalletsRead, s.quickstart),

		site.Get(app+"/keys", tenancy.KeysRead, site.With(site.Before(ids.APIKey), s.keys)),
		site.Reauth(site.Get(app+"/keys/new", tenancy.KeysWrite, s.newKey)),
		site.Reauth(site.Post(app+"/keys/new", tenancy.KeysWrite, s.createKey)),
		site.Get(app+"/keys/{key}", tenancy.KeysRead, site.With(pathKey, s.key)),
		site.Reauth(site.Post(app+"/keys/{key}/rotate", tenancy.KeysWrite, site.With(pathKey, s.rotateKey))),
		site.WhileArchived(site.Post(app+"/keys/{key}/revoke", tenancy.KeysWrite, site.With(pathKey, s.revokeKey))),

		site.Get(app+"/sandbox", tenancy.SubscriptionsWrite, s.sandboxPanel),
		site.Post(app+"/sandbox/clock", tenancy.SubscriptionsWrite, s.advanceSandbox),
		site.Post(app+"/sandbox/refund", tenancy.SubscriptionsWrite, s.refundInSandbox),
		site.Post(app+"/sandbox/invoice", tenancy.SubscriptionsWrite, s.payInSandbox),
		site.Post(app+"/sandbox/fail", tenancy.SubscriptionsWrite, s.failInSandbox),
		site.Post(app+"/sandbox/dispute", tenancy.SubscriptionsWrite, s.disputeInSandbox),
		site.Post(app+"/sandbox/webhooks", tenancy.SubscriptionsWrite, s.sandboxWebhooks),

		site.WhileArchived(site.Get(app+"/settings", tenancy.SettingsWrite, s.settings)),
		site.Post(app+"/settings", tenancy.SettingsWrite, s.updateSettings),
		site.Reauth(site.Post(app+"/settings/provider", tenancy.SettingsWrite, s.connectProvider)),
		site.WhileArchived(site.Post(app+"/settings/revoke-keys", tenancy.KeysWrite, s.revokeKeys)),

		site.Get(app+"/webhooks", tenancy.NotificationsRead, s.endpoints),
		site.Reauth(site.Get(app+"/webhooks/new", tenancy.WebhooksWrite, s.newEndpoint)),
		site.Reauth(site.Post(app+"/webhooks/new", tenancy.WebhooksWrite, s.createEndpoint)),
		site.Get(app+"/webhooks/{id}", tenancy.NotificationsRead, site.With(pathEndpoint, s.endpoint)),
		site.Reauth(site.Get(app+"/webhooks/{id}/edit", tenancy.WebhooksWrite, site.With(pathEndpoint, s.editEndpoint))),
		site.Reauth(site.Post(app+"/webhooks/{id}/edit", tenancy.WebhooksWrite, site.With(pathEndpoint, s.updateEndpoint))),
		site.Post(app+"/webhooks/{id}/status", tenancy.WebhooksWrite, site.With(pathEndpoint, s.switchEndpoint)),
		site.Post(app+"/webhooks/{id}/test", tenancy.WebhooksWrite, site.With(pathEndpoint, s.testEndpoint)),
		site.Post(app+"/webhooks/{id}/replay", tenancy.WebhooksWrite, site.With(pathEndpoint, s.replayEndpoint)),
		site.Reauth(site.Post(app+"/webhooks/{id}/rotate", tenancy.WebhooksWrite, site.With(pathEndpoint, s.rotateEndpoint))),
		site.WhileArchived(site.Post(app+"/webhooks/{id}/delete", tenancy.WebhooksWrite, site.With(pathEndpoint, s.deleteEndpoint))),

		site.Get(app+"/notifications", tenancy.NotificationsRead, site.With((*site.Request).BeforeSeq, s.feed)),
		site.Get(app+"/notifications/{id}", tenancy.NotificationsRead, site.With(site.ID("id", ids.Notification), s.notification)),
		site.Post(app+"/notifications/{id}/redeliver", tenancy.WebhooksWrite, site.With(site.ID("id", ids.Notification), s.redeliver)),

		site.Get(app+"/settings/alerts", tenancy.CreditsRead, s.alertRules),
		site.Get(app+"/settings/alerts/new", tenancy.CreditsWrite, s.newAlertRule),
		site.Post(app+"/settings/alerts/new", tenancy.CreditsWrite, s.createAlertRule),
		site.Get(app+"/settings/alerts/{key}/edit", tenancy.CreditsWrite, site.With(pathAlertRule, s.editAlertRule)),
		site.Post(app+"/settings/alerts/{key}/edit", tenancy.CreditsWrite, site.With(pathAlertRule, s.updateAlertRule)),
		site.Post(app+"/settings/alerts/{key}/delete", tenancy.CreditsWrite, site.With(pathAlertRule, s.deleteAlertRule)),
	}
}
