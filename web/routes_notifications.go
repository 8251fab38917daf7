package web

import "purser/tenancy"

// notificationRoutes are the pages of notifications, webhooks and alerts.
func (s *Site) notificationRoutes() []route {
	const app = appPrefix
	return []route{
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
		get(app+"/wallets/{id}/notifications", tenancy.NotificationsRead, s.walletNotifications),

		get(app+"/settings/alerts", tenancy.CreditsRead, s.alertRules),
		get(app+"/settings/alerts/new", tenancy.CreditsWrite, s.newAlertRule),
		post(app+"/settings/alerts/new", tenancy.CreditsWrite, s.createAlertRule),
		get(app+"/settings/alerts/{key}/edit", tenancy.CreditsWrite, s.editAlertRule),
		post(app+"/settings/alerts/{key}/edit", tenancy.CreditsWrite, s.updateAlertRule),
		post(app+"/settings/alerts/{key}/delete", tenancy.CreditsWrite, s.deleteAlertRule),
	}
}
