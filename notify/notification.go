package notify

import (
	"slices"

	"purser/ids"
)

// Type is what a notification reports.
type Type string

// The types. Data of a notification is the state after the change, so the last one of
// an object counts, in whichever order they arrive.
const (
	DepositCreated            Type = "deposit.created"
	TopUpPaid                 Type = "topup.paid"
	TopUpFailed               Type = "topup.failed"
	TopUpExpired              Type = "topup.expired"
	GrantCreated              Type = "grant.created"
	RefundApplied             Type = "refund.applied"
	DisputeOpened             Type = "dispute.opened"
	DisputeClosed             Type = "dispute.closed"
	DebtIncurred              Type = "debt.incurred"
	DebtCleared               Type = "debt.cleared"
	AdjustmentCreated         Type = "adjustment.created"
	ChargeReversed            Type = "charge.reversed"
	BalanceLow                Type = "balance.low"
	BalanceExhausted          Type = "balance.exhausted"
	BalanceRecovered          Type = "balance.recovered"
	AllowanceThreshold        Type = "allowance.threshold"
	SubscriptionStarted       Type = "subscription.started"
	SubscriptionUpdated       Type = "subscription.updated"
	SubscriptionRenewed       Type = "subscription.renewed"
	SubscriptionPaymentFailed Type = "subscription.payment_failed"
	SubscriptionEnded         Type = "subscription.ended"
	PlanSynced                Type = "plan.synced"
	PlanSyncFailed            Type = "plan.sync_failed"
	KeyExpiring               Type = "key.expiring"
	KeyRevoked                Type = "key.revoked"
	WebhookPaused             Type = "webhook.paused"
)

var types = []Type{
	DepositCreated, TopUpPaid, TopUpFailed, TopUpExpired, GrantCreated, RefundApplied, DisputeOpened, DisputeClosed,
	DebtIncurred, DebtCleared, AdjustmentCreated, ChargeReversed, BalanceLow, BalanceExhausted, BalanceRecovered,
	AllowanceThreshold, SubscriptionStarted, SubscriptionUpdated, SubscriptionRenewed, SubscriptionPaymentFailed,
	SubscriptionEnded, PlanSynced, PlanSyncFailed, KeyExpiring, KeyRevoked, WebhookPaused,
}

func Types() []Type { return slices.Clone(types) }

func (t Type) Known() bool { return slices.Contains(types, t) }

// Notification is what an application tells about one change.
type Notification struct {
	ID        ids.ID
	Type      Type
	WalletID  ids.ID // zero when it concerns no wallet
	Identity  string // of the wallet, when it was read
	Data      []byte // a JSON object
	CreatedAt int64  // by the application's clock
	Seq       int64  // zero until it is numbered, and for a test
	Test      bool
}
