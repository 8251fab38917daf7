package tenancy

import (
	"strings"

	"purser/fault"
)

// Permission is one thing that a key or a member may do. The zero value is no
// permission, and no set has it.
//
// The numbers may change from one release to the next; the names never do.
type Permission uint8

// What an API key may hold, in the order in which the API documents them.
const (
	CreditsRead Permission = iota + 1
	CreditsWrite
	FeaturesRead
	FeaturesWrite
	WalletsRead
	WalletsWrite
	DepositsRead
	DepositsWrite
	PlansRead
	PlansWrite
	SubscriptionsRead
	SubscriptionsWrite
	EventsIngest
	JournalRead
	EventsReverse
	WalletsTransfer
	NotificationsRead
	WebhooksWrite
	WalletsErase

	lastAPIPermission = WalletsErase
)

// What only a member may hold: the dashboard's own.
const (
	RequestsRead Permission = iota + 1 + lastAPIPermission
	BalancesAdjust
	KeysRead
	KeysWrite
	AppsWrite
	SettingsWrite
	MembersRead
	MembersWrite
	AuditRead
	OrganizationWrite

	lastPermission = OrganizationWrite
)

var described = [lastPermission + 1]struct{ name, allows string }{
	CreditsRead:        {"credits:read", "read credits, and see which application a key belongs to"},
	CreditsWrite:       {"credits:write", "create and update credits"},
	FeaturesRead:       {"features:read", "read features"},
	FeaturesWrite:      {"features:write", "create and update features"},
	WalletsRead:        {"wallets:read", "list wallets and read their balances"},
	WalletsWrite:       {"wallets:write", "create and rename wallets, and set their billing periods"},
	DepositsRead:       {"deposits:read", "read deposits"},
	DepositsWrite:      {"deposits:write", "deposit credits"},
	PlansRead:          {"plans:read", "read plans and their sync status"},
	PlansWrite:         {"plans:write", "create and update plans"},
	SubscriptionsRead:  {"subscriptions:read", "read subscriptions"},
	SubscriptionsWrite: {"subscriptions:write", "open checkouts, change plans, schedule and undo cancellations"},
	EventsIngest:       {"events:ingest", "check and track usage"},
	JournalRead:        {"journal:read", "read journals and events, and why usage was charged or denied"},
	EventsReverse:      {"events:reverse", "reverse charges"},
	WalletsTransfer:    {"wallets:transfer", "transfer credits between wallets"},
	NotificationsRead:  {"notifications:read", "read notifications, webhook endpoints and deliveries"},
	WebhooksWrite:      {"webhooks:write", "create and change webhook endpoints, and send notifications again"},
	WalletsErase:       {"wallets:erase", "erase the identities of wallets for good"},

	RequestsRead:      {"requests:read", "read the log of API requests"},
	BalancesAdjust:    {"balances:adjust", "adjust balances, reverse charges and refund payments"},
	KeysRead:          {"keys:read", "list API keys, without their secrets"},
	KeysWrite:         {"keys:write", "create, rotate and revoke API keys"},
	AppsWrite:         {"apps:write", "create, archive and restore applications"},
	SettingsWrite:     {"settings:write", "change an application's settings and its payment provider"},
	MembersRead:       {"members:read", "list members and invitations"},
	MembersWrite:      {"members:write", "invite, change and remove members"},
	AuditRead:         {"audit:read", "read the audit log"},
	OrganizationWrite: {"organization:write", "rename and archive the organization, and require a second factor of its members"},
}

var byName = func() map[string]Permission {
	all := make(map[string]Permission, lastPermission)
	for p := range AllPermissions().Each() {
		all[p.String()] = p
	}
	return all
}()

// String is the permission's name, such as "events:ingest".
func (p Permission) String() string {
	if p > lastPermission {
		return ""
	}
	return described[p].name
}

// Reads reports whether the permission changes nothing.
func (p Permission) Reads() bool { return strings.HasSuffix(p.String(), ":read") }

// Allows says in a few words what the permission lets one do.
func (p Permission) Allows() string {
	if p > lastPermission {
		return ""
	}
	return described[p].allows
}

func ParsePermission(name string) (Permission, error) {
	p, known := byName[name]
	if !known {
		return 0, fault.Newf(fault.InvalidRequest, "Unknown permission %.40q.", name)
	}
	return p, nil
}
