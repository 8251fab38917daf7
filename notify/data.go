package notify

import (
	"encoding/json"

	"purser/ids"
)

// The data of notifications: the state after the change. Amounts are whole nanocredits
// in text, so that no reader makes a float of them.

// EntryData is a journal entry: of deposit.created, grant.created, topup.paid,
// refund.applied, dispute.opened, dispute.closed, adjustment.created and charge.reversed.
type EntryData struct {
	ID             string      `json:"id,omitempty"` // empty for a dispute that was lost: there is no entry
	CreditKey      string      `json:"creditKey"`
	Delta          string      `json:"deltaNanocredits"`
	Balance        string      `json:"balanceNanocredits"`
	Debt           string      `json:"debtNanocredits"`
	IdempotencyKey *string     `json:"idempotencyKey,omitempty"`
	Reason         string      `json:"reason,omitempty"`
	EventID        string      `json:"eventId,omitempty"`
	Source         *SourceData `json:"source,omitempty"`
	Outcome        string      `json:"outcome,omitempty"` // of dispute.closed
}

// The outcomes of a dispute.
const (
	DisputeWon  = "won"
	DisputeLost = "lost"
)

// SourceData is the payment that an entry comes from.
type SourceData struct {
	Kind string `json:"kind"`
	ID   string `json:"id"`
}

// BalanceData is one balance of a wallet: of debt.incurred, debt.cleared,
// balance.low, balance.exhausted and balance.recovered.
type BalanceData struct {
	CreditKey string `json:"creditKey"`
	Balance   string `json:"balanceNanocredits"`
	Debt      string `json:"debtNanocredits"`
	Threshold string `json:"thresholdNanocredits,omitempty"`
	Rule      string `json:"rule,omitempty"`
}

// AllowanceData is the data of allowance.threshold.
type AllowanceData struct {
	FeatureKey  string `json:"featureKey"`
	Used        int64  `json:"used"`
	Limit       int64  `json:"limit"`
	Percent     int64  `json:"thresholdPercent"`
	PeriodStart int64  `json:"periodStart"`
	PeriodEnd   int64  `json:"periodEnd"`
	Rule        string `json:"rule,omitempty"`
}

// TopUpData is the data of topup.failed and topup.expired.
type TopUpData struct {
	ID          string `json:"id"`
	Status      string `json:"status"`
	CreditKey   string `json:"creditKey"`
	Amount      string `json:"amountNanocredits"`
	AmountCents int64  `json:"amountCents"`
	Currency    string `json:"currency"`
}

// SubscriptionData is the data of subscription.*.
type SubscriptionData struct {
	ID                string `json:"id"`
	Status            string `json:"status"`
	PlanKey           string `json:"planKey"`
	PeriodStart       int64  `json:"currentPeriodStart"`
	PeriodEnd         int64  `json:"currentPeriodEnd"`
	CancelAtPeriodEnd bool   `json:"cancelAtPeriodEnd"`
}

// PlanData is the data of plan.synced and plan.sync_failed.
type PlanData struct {
	ID         string `json:"id"`
	Key        string `json:"key"`
	SyncStatus string `json:"syncStatus"`
	SyncError  string `json:"syncError,omitempty"`
}

// KeyData is the data of key.expiring and key.revoked.
type KeyData struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	ExpiresAt int64  `json:"expiresAt,omitempty"`
	RevokedAt int64  `json:"revokedAt,omitempty"`
}

// PausedData is the data of webhook.paused.
type PausedData struct {
	ID           string         `json:"id"`
	URL          string         `json:"url"`
	Status       EndpointStatus `json:"status"`
	Reason       PauseReason    `json:"reason"`
	FailingSince int64          `json:"failingSince"`
}

// New makes a notification of data, which is one of the types here.
func New(kind Type, wallet ids.ID, data any, now int64) Notification {
	encoded, err := json.Marshal(data)
	if err != nil {
		panic("notify: " + err.Error()) // structs of strings and numbers always encode
	}
	return Notification{ID: ids.New(), Type: kind, WalletID: wallet, Data: encoded, CreatedAt: now}
}

// Sample is example data of a type, for tests of an endpoint.
func Sample(t Type) any {
	const deposit = "dep_01kdvdna0cfx9a26nnrw56xpp0"
	entry := EntryData{
		ID: "txn_01kdvdna0cfx9a26nnrw56xpp0", CreditKey: "tokens", Delta: "5000000000", Balance: "12500000000", Debt: "0",
	}
	switch t {
	case DepositCreated:
		key := "order-4711"
		entry.ID, entry.IdempotencyKey = deposit, &key
		return entry
	case TopUpPaid:
		entry.ID = deposit
		entry.Source = &SourceData{"session", "cs_test_a1b2c3"}
		return entry
	case GrantCreated:
		entry.ID = deposit
		entry.Source = &SourceData{"invoice", "in_1PZa2b"}
		return entry
	case RefundApplied, DisputeOpened:
		entry.Delta, entry.Source = "-5000000000", &SourceData{"invoice", "in_1PZa2b"}
		return entry
	case DisputeClosed:
		entry.Outcome = DisputeWon
		entry.Source = &SourceData{"invoice", "in_1PZa2b"}
		return entry
	case AdjustmentCreated:
		entry.Reason = "Goodwill"
		return entry
	case ChargeReversed:
		entry.Reason, entry.EventID = "The generation failed", "019b76da-a800-7c3e-8f5a-2d9b1e4c7a60"
		return entry
	case DebtIncurred:
		return BalanceData{CreditKey: "tokens", Balance: "0", Debt: "2500000000"}
	case DebtCleared:
		return BalanceData{CreditKey: "tokens", Balance: "2500000000", Debt: "0"}
	case BalanceRecovered:
		return BalanceData{CreditKey: "tokens", Balance: "1300000000", Debt: "0", Threshold: "1000000000", Rule: "low"}
	case BalanceLow:
		return BalanceData{CreditKey: "tokens", Balance: "900000000", Debt: "0", Threshold: "1000000000", Rule: "low"}
	case BalanceExhausted:
		return BalanceData{CreditKey: "tokens", Balance: "0", Debt: "0"}
	case AllowanceThreshold:
		return AllowanceData{FeatureKey: "chat", Used: 800, Limit: 1000, Percent: 80, PeriodStart: 1_767_225_600_000, PeriodEnd: 1_769_904_000_000, Rule: "chat-80"}
	case TopUpFailed, TopUpExpired:
		status := "expired"
		if t == TopUpFailed {
			status = "failed"
		}
		return TopUpData{ID: "chk_01kdvdna0cfx9a26nnrw56xpp0", Status: status, CreditKey: "tokens", Amount: "5000000000", AmountCents: 500, Currency: "usd"}
	case SubscriptionStarted, SubscriptionUpdated, SubscriptionRenewed:
		return sampleSubscription("active")
	case SubscriptionPaymentFailed:
		return sampleSubscription("past_due")
	case SubscriptionEnded:
		return sampleSubscription("canceled")
	case PlanSynced:
		return PlanData{ID: "pln_01kdvdna0cfx9a26nnrw56xpp0", Key: "pro", SyncStatus: "synced"}
	case PlanSyncFailed:
		return PlanData{ID: "pln_01kdvdna0cfx9a26nnrw56xpp0", Key: "pro", SyncStatus: "error", SyncError: "The payment provider rejected the price."}
	case KeyExpiring:
		return KeyData{ID: "key_01kdvdna0cfx9a26nnrw56xpp0", Name: "Server", ExpiresAt: 1_767_312_000_000}
	case KeyRevoked:
		return KeyData{ID: "key_01kdvdna0cfx9a26nnrw56xpp0", Name: "Server", RevokedAt: 1_767_225_600_000}
	case WebhookPaused:
		return PausedData{
			ID: "whe_01kdvdna0cfx9a26nnrw56xpp0", URL: "https://example.com/webhooks", Status: Paused, Reason: PauseFailing, FailingSince: 1_766_793_600_000,
		}
	}
	return struct{}{}
}

func sampleSubscription(status string) SubscriptionData {
	return SubscriptionData{
		ID: "sub_01kdvdna0cfx9a26nnrw56xpp0", Status: status, PlanKey: "pro", PeriodStart: 1_767_225_600_000, PeriodEnd: 1_769_904_000_000,
	}
}
