package ledger

import (
	"context"

	"purser/metering"
	"purser/notify"
)

// entryTypes are the notifications of journal entries by kind. A dispute that moves
// credits back is closed.
var entryTypes = map[metering.EntryKind]notify.Type{
	metering.EntryDeposit: notify.DepositCreated, metering.EntryGrant: notify.GrantCreated, metering.EntryTopUp: notify.TopUpPaid,
	metering.EntryRefund: notify.RefundApplied, metering.EntryDispute: notify.DisputeOpened,
	metering.EntryAdjustment: notify.AdjustmentCreated, metering.EntryReversal: notify.ChargeReversed,
}

// EntryType is the notification of an entry, by its kind and whether it took credits. A
// transfer has none.
func EntryType(kind metering.EntryKind, out bool) (t notify.Type, announced bool) {
	if kind == metering.EntryDispute && !out {
		return notify.DisputeClosed, true
	}
	t, announced = entryTypes[kind]
	return t, announced
}

// AnnouncedKinds are the kinds of entries that are announced.
func AnnouncedKinds() []string {
	kinds := make([]string, 0, len(entryTypes))
	for kind := range entryTypes {
		kinds = append(kinds, string(kind))
	}
	return kinds
}

// EntryTypes are all notifications of entries.
func EntryTypes() []string {
	types := []string{string(notify.DisputeClosed)}
	for _, t := range entryTypes {
		types = append(types, string(t))
	}
	return types
}

// announce inserts the notifications of an entry, in its transaction: the entry itself,
// and a debt that begins or ends with it.
func (tx Tx) announce(ctx context.Context, p Posting, e metering.Entry, before, after metering.Balance) error {
	kind, known := EntryType(p.Kind, p.Delta.Out)
	entry := notify.EntryData{
		ID: e.ID.Format(p.Kind.IDPrefix()), CreditKey: p.Credit.Key, Delta: e.Delta.String(), Balance: after.Amount.String(), Debt: after.Debt.String(),
		IdempotencyKey: p.IdempotencyKey, Reason: p.Reason, EventID: p.EventID,
	}
	if kind == notify.DisputeClosed {
		entry.Outcome = notify.DisputeWon
	}
	if p.Source.ID != "" {
		entry.Source = &notify.SourceData{Kind: string(p.Source.Kind), ID: p.Source.ID}
	}
	var notifications []notify.Notification
	if known { // a transfer has no notification, only the debt that it pays
		notifications = append(notifications, notify.New(kind, e.WalletID, entry, e.CreatedAt))
	}
	balance := notify.BalanceData{CreditKey: p.Credit.Key, Balance: after.Amount.String(), Debt: after.Debt.String()}
	switch {
	case before.Debt == 0 && after.Debt > 0:
		notifications = append(notifications, notify.New(notify.DebtIncurred, e.WalletID, balance, e.CreatedAt))
	case before.Debt > 0 && after.Debt == 0:
		notifications = append(notifications, notify.New(notify.DebtCleared, e.WalletID, balance, e.CreatedAt))
	}
	return tx.Notify(ctx, notifications...)
}
