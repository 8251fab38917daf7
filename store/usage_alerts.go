package store

import (
	"purser/ids"
	"purser/metering"
	"purser/notify"
	"purser/store/internal/ledger"
	"purser/store/internal/pg"
	"purser/store/internal/wire"
)

var (
	// A rule has up to six marks, and those of thresholds that it had before.
	readAlertMarks = pg.Declare("read alert marks", `
		SELECT m.wallet_id, m.rule_id, m.threshold, m.armed, m.fired_at, m.period_start
		FROM unnest($2::uuid[]) AS t (wallet_id) CROSS JOIN LATERAL (
			SELECT a.wallet_id, a.rule_id, a.threshold, a.armed, a.fired_at, a.period_start FROM unnest($3::uuid[]) AS r (rule_id) CROSS JOIN LATERAL (
				SELECT wallet_id, rule_id, threshold, armed, fired_at, period_start
				FROM alert_marks WHERE app_id = $1 AND wallet_id = t.wallet_id AND rule_id = r.rule_id
				ORDER BY threshold LIMIT $4) a
			LIMIT $4) m`)

	markAlerts = pg.Declare("mark alerts", `
		INSERT INTO alert_marks (app_id, org_id, wallet_id, rule_id, threshold, armed, fired_at, period_start)
		SELECT s.app_id, s.org_id, t.wallet_id, t.rule_id, t.threshold, false, t.fired_at, t.period_start
		FROM app_state s CROSS JOIN unnest($2::uuid[], $3::uuid[], $4::numeric[], $5::bigint[], $6::bigint[])
			AS t (wallet_id, rule_id, threshold, fired_at, period_start)
		WHERE s.app_id = $1
		ON CONFLICT (app_id, wallet_id, rule_id, threshold) DO UPDATE SET
			armed = false, fired_at = excluded.fired_at, period_start = excluded.period_start`)
)

// maxMarks is how many marks of a wallet are read, of all rules together: the lane waits for
// them, and with it other applications. Fifty rules have three hundred.
const maxMarks = 1_000

// raisedAlert is an alert of the batch, to be written with it.
type raisedAlert struct {
	metering.Alert
	wallet       *walletState
	notification notify.Notification
}

// needsMarks reports whether a decision may raise an alert and the marks that say so are
// not known. An application without rules never needs them.
func (b *appBatch) needsMarks(w *walletState, d *metering.Decision) bool {
	return len(b.rules) > 0 && w.marks == nil && metering.MayAlert(b.rules, w.state.Wallet.Identity, d)
}

// raise adds the alerts that a decision raises. The marks are known: under locks they
// were read, and otherwise needsMarks has left the request to the locks.
func (b *appBatch) raise(w *walletState, d *metering.Decision) {
	for _, a := range metering.DecideAlerts(b.rules, w.marks, w.state.Wallet.Identity, d, w.state.Now) {
		w.marks.Apply(a)
		n, err := ledger.AlertNotification(a, w.state.Wallet.ID, w.state.Now)
		if err != nil {
			panic(err) // a struct of texts and numbers
		}
		id := n.ID.After(*w.after)
		n.ID, w.after = id, &id
		b.alerts = append(b.alerts, raisedAlert{a, w, n})
	}
}

// loadMarks reads the marks of the wallets, which are locked.
func (b *appBatch) loadMarks(pipe *wire.Pipe) {
	if len(b.rules) == 0 || len(b.byID) == 0 {
		return
	}
	wallets, rules := wire.UUIDColumn, wire.UUIDColumn
	from, after := ids.New(), new(ids.ID)
	for id, w := range b.byID {
		w.marks, w.after = metering.AlertMarks{}, after
		wallets.ID(id)
	}
	for i := range b.rules {
		rules.ID(b.rules[i].ID)
	}
	pipe.Send(pg.SelectLaterNotification, func(row *wire.Row) { *after = row.ID() }, b.scope.AppID[:], from[:])
	pipe.Send(readAlertMarks, b.scanMark, b.scope.AppID[:], wallets.Encode(nil), rules.Encode(nil), int8Param(maxMarks))
}

func (b *appBatch) scanMark(row *wire.Row) {
	w := b.byID[row.ID()]
	key := metering.MarkKey{RuleID: row.ID(), Threshold: uint64(row.Amount())}
	w.marks[key] = metering.AlertMark{Armed: row.Bool(), FiredAt: row.Int8(), Period: row.Int8()}
}

func (b *appBatch) scanRule(row *wire.Row) {
	rule := metering.AlertRule{ID: row.ID(), Key: row.Text(), Kind: metering.AlertKind(row.Text())}
	watched, key, thresholds := row.ID(), row.Text(), row.Text()
	rule.RearmPercent, rule.QuietHours, rule.Identity, rule.CreatedAt = row.Int8(), row.Int8(), row.Text(), row.Int8()
	if err := ledger.CompleteAlertRule(&rule, watched, key, thresholds); err != nil && row.Err() == nil {
		row.Fail(err)
	}
	b.rules = append(b.rules, rule)
}

// writeAlerts writes the marks and the notifications of the batch's alerts, after the
// wallets, whose locks protect the marks.
func (b *appBatch) writeAlerts(pipe *wire.Pipe) {
	if len(b.alerts) == 0 {
		return
	}
	type walletMark struct {
		wallet ids.ID
		metering.MarkKey
	}
	done := make(map[walletMark]bool)
	wallet, rule, threshold, firedAt, period := wire.UUIDColumn, wire.UUIDColumn, wire.NumericColumn, wire.Int8Column, wire.Int8Column
	// The last alert of a threshold wins: an allowance may be crossed in two periods.
	for i := len(b.alerts) - 1; i >= 0; i-- {
		a := &b.alerts[i]
		for _, key := range a.Marked {
			at := walletMark{a.wallet.state.Wallet.ID, key}
			if !done[at] {
				done[at] = true
				wallet.ID(at.wallet)
				rule.ID(key.RuleID)
				threshold.Amount(metering.Amount(key.Threshold))
				firedAt.Int8(a.Mark.FiredAt)
				period.Int8(a.Mark.Period)
			}
		}
	}
	pipe.SendRows(markAlerts, markAlerts, []wire.Column{wallet, rule, threshold, firedAt, period}, b.scope.AppID[:])
	id, kind, about, data, createdAt := wire.UUIDColumn, wire.TextColumn, wire.UUIDColumn, wire.TextColumn, wire.Int8Column
	for i := range b.alerts {
		n := b.alerts[i].notification
		id.ID(n.ID)
		kind.Text(string(n.Type))
		about.ID(n.WalletID)
		data.Text(string(n.Data))
		createdAt.Int8(n.CreatedAt)
	}
	pipe.SendRows(pg.InsertNotifications, pg.InsertNotifications, []wire.Column{id, kind, about, data, createdAt}, b.scope.AppID[:])
}
