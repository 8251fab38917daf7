package site

import (
	"purser/ids"
	"purser/tenancy"
)

// WalletPath is the URL of a wallet.
func (req *Request) WalletPath(id ids.ID) string {
	return req.AppPath("wallets", id.Format(ids.Wallet))
}

// WalletLink is the URL of a wallet, or "" for members who may not read wallets.
func (req *Request) WalletLink(id ids.ID) string {
	return req.LinkIfPermitted(tenancy.WalletsRead, "wallets", id.Format(ids.Wallet))
}

// CustomerLink is the URL of the wallets that a customer's identity finds, or "" for
// members who may not read wallets.
func (req *Request) CustomerLink(identity string) string {
	if !req.May(tenancy.WalletsRead) {
		return ""
	}
	return Listing{Path: req.AppPath("wallets")}.At("q", identity)
}

// TransactionPath is the URL of a change of a balance.
func (req *Request) TransactionPath(id ids.ID) string {
	return req.AppPath("transactions", id.Format(ids.Transaction))
}

// TransactionLink is the URL of a change of a balance, or "" for members who may not read
// journals.
func (req *Request) TransactionLink(id ids.ID) string {
	return req.LinkIfPermitted(tenancy.JournalRead, "transactions", id.Format(ids.Transaction))
}

// NotificationPath is the URL of a notification.
func (req *Request) NotificationPath(id ids.ID) string {
	return req.AppPath("notifications", id.Format(ids.Notification))
}

// EndpointPath is the URL of a webhook endpoint.
func (req *Request) EndpointPath(id ids.ID) string {
	return req.AppPath("webhooks", id.Format(ids.WebhookEndpoint))
}
