package web

import "purser/ids"

func (req *request) walletPath(id ids.ID) string {
	return req.appPath("wallets", id.Format(ids.Wallet))
}

func (req *request) transactionPath(id ids.ID) string {
	return req.appPath("transactions", id.Format(ids.Transaction))
}

func (req *request) notificationPath(id ids.ID) string {
	return req.appPath("notifications", id.Format(ids.Notification))
}

func (req *request) endpointPath(id ids.ID) string {
	return req.appPath("webhooks", id.Format(ids.WebhookEndpoint))
}
