package site

import "purser/ids"

// WalletPath is the URL of a wallet.
func (req *Request) WalletPath(id ids.ID) string {
	return req.AppPath("wallets", id.Format(ids.Wallet))
}

// TransactionPath is the URL of a change of a balance.
func (req *Request) TransactionPath(id ids.ID) string {
	return req.AppPath("transactions", id.Format(ids.Transaction))
}

// NotificationPath is the URL of a notification.
func (req *Request) NotificationPath(id ids.ID) string {
	return req.AppPath("notifications", id.Format(ids.Notification))
}

// EndpointPath is the URL of a webhook endpoint.
func (req *Request) EndpointPath(id ids.ID) string {
	return req.AppPath("webhooks", id.Format(ids.WebhookEndpoint))
}
