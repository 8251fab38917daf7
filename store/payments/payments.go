package payments

import (
	"context"

	"github.com/jackc/pgx/v5"

	"purser/billing"
	"purser/ids"
	"purser/metering"
	"purser/store/internal/ledger"
	"purser/store/internal/pg"
	"purser/store/queue"
)

const paymentColumns = `
	source_kind, source_id, wallet_id, amount_cents, currency, intent_id, charge_id, plan_id, period_start, period_end, free,
	refunded_cents, disputed_cents, lost_cents, balance_cents`

var (
	insertPayment = pg.Declare("insert payment", pg.Insert("provider_payments", `source_kind, source_id, org_id, wallet_id, subscription_id, amount_cents, balance_cents, currency,
			intent_id, charge_id, plan_id, period_start, period_end, free, created_at`)+`
		ON CONFLICT (app_id, source_kind, source_id) DO NOTHING`)

	insertPaymentCredits = pg.Declare("insert payment credits", `
		INSERT INTO payment_credits (app_id, org_id, source_kind, source_id, credit_id, position, amount_nanocredits)
		SELECT s.app_id, s.org_id, $2, $3, t.credit_id, t.position, t.amount
		FROM app_state s CROSS JOIN unnest($4::uuid[], $5::integer[], $6::numeric[]) AS t (credit_id, position, amount)
		WHERE s.app_id = $1`)

	// A subscription's own payments and the wallet's free grants: the input of a
	// projection.
	selectPayments = pg.Declare("select payments", `
		SELECT`+paymentColumns+`
		FROM provider_payments WHERE app_id = $1 AND wallet_id = $2 AND (free OR subscription_id = $3)`)

	// When the subscription that replaced this one was first paid.
	selectReplacedFrom = pg.Declare("select replaced from", `
		SELECT coalesce(min(p.period_start), 0)
		FROM subscription_changes c
		JOIN provider_payments p ON p.app_id = $1 AND p.wallet_id = c.wallet_id AND p.subscription_id = c.subscription_id
		WHERE c.app_id = $1 AND c.wallet_id = $2 AND c.replaces = $3 AND c.state = 'applied'`)

	selectPaymentOfCharge = pg.Declare("select payment of charge", `
		SELECT`+paymentColumns+`
		FROM provider_payments WHERE app_id = $1 AND (charge_id = $2 OR intent_id = $3)
		ORDER BY created_at LIMIT 1`)

	selectIdentityOfCharge = pg.Declare("select identity of charge", `
		SELECT w.identity
		FROM provider_payments p JOIN wallets w ON w.app_id = $1 AND w.id = p.wallet_id
		WHERE p.app_id = $1 AND (p.charge_id = $2 OR p.intent_id = $3)
		ORDER BY p.created_at LIMIT 1`)

	selectPaymentCredits = pg.Declare("select payment credits", `
		SELECT p.source_kind, p.source_id, p.credit_id, c.key, p.amount_nanocredits, p.taken_back_nanocredits
		FROM payment_credits p JOIN credits c ON c.app_id = $1 AND c.id = p.credit_id
		WHERE p.app_id = $1 AND p.source_id = ANY ($2)
		ORDER BY p.source_kind, p.source_id, p.position`)

	reversePayment = pg.Declare("reverse payment", `
		UPDATE provider_payments SET refunded_cents = $4, disputed_cents = $5, lost_cents = $6
		WHERE app_id = $1 AND source_kind = $2 AND source_id = $3`)

	reverseCredit = pg.Declare("reverse credit", `
		UPDATE payment_credits SET taken_back_nanocredits = $5
		WHERE app_id = $1 AND source_kind = $2 AND source_id = $3 AND credit_id = $4`)
)

// storedPayment is a payment with its wallet.
type storedPayment struct {
	billing.Payment
	walletID ids.ID
}

func readPayment(row pgx.CollectableRow) (storedPayment, error) {
	var p storedPayment
	var intent, charge *string
	var plan *ids.ID
	var start, end *int64
	err := row.Scan(&p.Source.Kind, &p.Source.ID, &p.walletID, &p.AmountCents, &p.Currency, &intent, &charge, &plan, &start, &end, &p.Free,
		&p.RefundedCents, &p.DisputedCents, &p.LostCents, &p.BalanceCents)
	p.IntentID, p.ChargeID, p.PlanID = pg.OrZero(intent), pg.OrZero(charge), pg.OrZero(plan)
	p.Period = metering.Period{Start: pg.OrZero(start), End: pg.OrZero(end)}
	return p, err
}

// payments reads payments with the credits that they granted.
func (tx appTx) payments(ctx context.Context, s pg.Statement, args ...any) ([]storedPayment, error) {
	list, err := pg.Collect(ctx, tx, s, readPayment, args...)
	if err != nil || len(list) == 0 {
		return list, err
	}
	bySource := make(map[billing.Source]*billing.Payment, len(list))
	sources := make([]string, len(list))
	for i := range list {
		bySource[list[i].Source] = &list[i].Payment
		sources[i] = list[i].Source.ID
	}
	err = pg.Each(ctx, tx, selectPaymentCredits, func(row pgx.CollectableRow) error {
		var source billing.Source
		var granted, removed billing.Grant
		err := row.Scan(&source.Kind, &source.ID, &granted.CreditID, &granted.CreditKey, (*pg.Amount)(&granted.Amount), (*pg.Amount)(&removed.Amount))
		if p := bySource[source]; p != nil {
			p.Credits = append(p.Credits, granted)
			if removed.Amount > 0 {
				removed.CreditID, removed.CreditKey = granted.CreditID, granted.CreditKey
				p.TakenBack = append(p.TakenBack, removed)
			}
		}
		return err
	}, sources)
	return list, err
}

func plainPayments(list []storedPayment) (payments []billing.Payment) {
	for _, p := range list {
		payments = append(payments, p.Payment)
	}
	return payments
}

// creditPayments credits payments to a locked wallet, in order, and enqueues a refresh
// of each charge: a refund may have been reported before its payment was known. The
// insert skips a payment whose source was already credited. The caller ends the
// transaction with ScheduleWake.
func (tx appTx) creditPayments(ctx context.Context, w *ledger.Wallet, s paymentContext, payments []billing.Payment, now int64) error {
	for _, p := range payments {
		inserted, err := tx.ExecAny(ctx, insertPayment, pg.Named{
			"source_kind": p.Source.Kind, "source_id": p.Source.ID, "org_id": tx.Scope.OrgID, "wallet_id": w.ID,
			"subscription_id": pg.OrNull(s.subscription), "amount_cents": p.AmountCents, "balance_cents": p.BalanceCents,
			"currency": p.Currency, "intent_id": pg.OrNull(p.IntentID), "charge_id": pg.OrNull(p.ChargeID), "plan_id": pg.OrNull(p.PlanID),
			"period_start": pg.OrNull(p.Period.Start), "period_end": pg.OrNull(p.Period.End), "free": p.Free, "created_at": now,
		})
		if err != nil {
			return err
		}
		if inserted == 0 {
			continue
		}
		if p, err = tx.dropOverflow(ctx, w, p, now); err != nil {
			return err
		}
		if err := tx.postCredits(ctx, w, s, p, now); err != nil {
			return err
		}
		if p.ChargeID == "" {
			continue
		}
		if err := tx.Enqueue(ctx, queue.Job{Kind: queue.JobCharge, Object: p.ChargeID, Connection: s.connection, DueAt: now}); err != nil {
			return err
		}
	}
	return nil
}

// paymentContext is what payments were for, and the account that collected them.
type paymentContext struct {
	subscription ids.ID // zero for a top-up
	connection   ids.ID // zero where nothing was collected
	clockOffset  int64  // when the payments were settled
}

// dropOverflow leaves out credits that would overflow the balance and raises an alert.
// An error instead would be retried for as long as the balance is full and block every
// later report about the subscription.
func (tx appTx) dropOverflow(ctx context.Context, w *ledger.Wallet, p billing.Payment, now int64) (billing.Payment, error) {
	if len(p.Credits) == 0 {
		return p, nil
	}
	held, err := tx.WithBalances(ctx, []ledger.Wallet{*w})
	if err != nil {
		return p, err
	}
	fits := billing.Fitting(held[0].Balances, p.Credits)
	if len(fits) == len(p.Credits) {
		return p, nil
	}
	p.Credits = fits
	return p, tx.raiseAlerts(ctx, w.ID, []billing.Alert{{Kind: billing.BalanceFull, ObjectID: p.Source.ID}}, now)
}

func (tx appTx) postCredits(ctx context.Context, w *ledger.Wallet, s paymentContext, p billing.Payment, now int64) error {
	var credits []ids.ID
	var positions []int32
	var amounts []pg.Amount
	for i, g := range p.Credits {
		credits, positions, amounts = append(credits, g.CreditID), append(positions, int32(i)), append(amounts, pg.Amount(g.Amount))
	}
	if err := tx.Exec(ctx, insertPaymentCredits, int64(len(credits)), p.Source.Kind, p.Source.ID, credits, positions, amounts); err != nil {
		return err
	}
	for _, g := range p.Credits {
		_, err := tx.Post(ctx, w, ledger.Posting{
			ID: ids.New(), Kind: p.EntryKind(), Credit: metering.Credit{ID: g.CreditID, Key: g.CreditKey},
			Delta: metering.Delta{Amount: g.Amount}, Source: p.Source, Now: now, ClockOffset: s.clockOffset,
			Change: func(b metering.Balance) (metering.Balance, error) { return b.Receive(g.Amount) },
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// ApplyCharge claws back credits for the refunded and disputed part of a charge, or
// returns them. The total at the provider is compared with what was clawed back
// already, so it is idempotent and reports may come in any order.
func (a App) ApplyCharge(ctx context.Context, f queue.Fence, remote billing.ProviderCharge, now int64) error {
	var identity string
	err := a.fenced(ctx, f, func(ctx context.Context, tx appTx) error {
		var err error
		if identity, err = tx.identityOfCharge(ctx, remote.ID, remote.IntentID); err != nil {
			return err
		}
		locked, err := tx.LockWallets(ctx, identity)
		if err != nil || len(locked) == 0 {
			return err
		}
		payments, err := tx.payments(ctx, selectPaymentOfCharge, pg.OrNull(remote.ID), pg.OrNull(remote.IntentID))
		if err != nil || len(payments) == 0 {
			return err
		}
		return tx.reverse(ctx, &locked[0], payments[0].Payment, remote, f.ClockOffset, now)
	})
	a.app.WalletChanged(identity)
	return err
}

func (tx appTx) reverse(ctx context.Context, w *ledger.Wallet, p billing.Payment, remote billing.ProviderCharge, clockOffset, now int64) error {
	next, movements := p.Reverse(remote.Reversed())
	next.LostCents = max(p.LostCents, remote.LostCents()) // a closed dispute stays closed
	if remote.HasFailedRefund() && next.RefundedCents+next.DisputedCents < p.AmountCents {
		if err := tx.alertFailedRefund(ctx, w, p, next, now); err != nil {
			return err
		}
	}
	if next.RefundedCents == p.RefundedCents && next.DisputedCents == p.DisputedCents && next.LostCents == p.LostCents && len(movements) == 0 {
		return nil
	}
	if err := tx.Exec(ctx, reversePayment, 1, p.Source.Kind, p.Source.ID, next.RefundedCents, next.DisputedCents, next.LostCents); err != nil {
		return err
	}
	// A repeated report tries again what did not fit, which is no new problem.
	repeated := next.RefundedCents == p.RefundedCents && next.DisputedCents == p.DisputedCents
	for _, credited := range p.Credits {
		if err := tx.clawBack(ctx, w, p, credited, movements, repeated, clockOffset, now); err != nil {
			return err
		}
	}
	if next.LostCents > p.LostCents {
		return tx.announceLost(ctx, w, p, now)
	}
	return nil
}

// alertFailedRefund raises an alert about a payment that Purser has refunded and whose
// money is no longer returned, such as after the bank rejected it: the action is not
// repeated. It is raised again only when a report returns less than the one before.
func (tx appTx) alertFailedRefund(ctx context.Context, w *ledger.Wallet, p, next billing.Payment, now int64) error {
	op, err := optionalRow(tx.operation(ctx, billing.OperationAction, actionKey(billing.RefundInvoice, p.Source.ID)))
	if err != nil || op == nil || op.State != billing.OperationDone {
		return err
	}
	less := next.RefundedCents+next.DisputedCents < p.RefundedCents+p.DisputedCents
	return tx.raise(ctx, w.ID, billing.Alert{Kind: billing.ActionRefused, ObjectID: p.Source.ID}, less, now)
}

// clawBack posts the movements of one credit of a payment and stores how much is clawed
// back. What would exceed 19 digits is left out with an alert: the next report about
// the charge tries it again. Each movement starts from what was posted, not from what
// the one before should have reached.
func (tx appTx) clawBack(ctx context.Context, w *ledger.Wallet, p billing.Payment, credited billing.Grant, movements []billing.Movement, repeated bool, clockOffset, now int64) error {
	credit := metering.Credit{ID: credited.CreditID, Key: credited.CreditKey}
	taken := p.TakenBackOf(credit.ID)
	for _, m := range movements {
		if m.CreditID != credit.ID {
			continue
		}
		before, err := tx.Balance(ctx, w.ID, credit)
		if err != nil {
			return err
		}
		delta := m.From(taken)
		after, moved, alert := bounded(before, delta)
		if moved < delta.Amount && !repeated {
			if err := tx.raiseAlerts(ctx, w.ID, []billing.Alert{{Kind: alert, ObjectID: p.Source.ID}}, now); err != nil {
				return err
			}
		}
		if moved == 0 {
			continue
		}
		if _, err := tx.Post(ctx, w, ledger.Posting{
			ID: ids.New(), Kind: m.Kind, Credit: credit, Delta: metering.Delta{Amount: moved, Out: delta.Out}, Source: p.Source, Now: now,
			ClockOffset: clockOffset, Change: func(metering.Balance) (metering.Balance, error) { return after, nil },
		}); err != nil {
			return err
		}
		if delta.Out {
			taken += moved
		} else {
			taken -= moved
		}
	}
	return tx.Exec(ctx, reverseCredit, 1, p.Source.Kind, p.Source.ID, credit.ID, pg.Amount(taken))
}

// bounded moves as much of a balance as 19 digits allow, and returns the alert for the
// rest.
func bounded(b metering.Balance, d metering.Delta) (after metering.Balance, moved metering.Amount, alert billing.AlertKind) {
	if d.Out {
		after, moved = b.TakeBackUpTo(d.Amount)
		return after, moved, billing.DebtFull
	}
	after, moved = b.ReceiveUpTo(d.Amount)
	return after, moved, billing.BalanceFull
}

func (a App) IdentityOfCharge(ctx context.Context, chargeID, intentID string) (string, error) {
	return pg.Return(ctx, a.transact, func(ctx context.Context, tx appTx) (string, error) {
		return tx.identityOfCharge(ctx, chargeID, intentID)
	})
}

func (tx appTx) identityOfCharge(ctx context.Context, chargeID, intentID string) (string, error) {
	return pg.Find(ctx, tx, selectIdentityOfCharge, pgx.RowTo[string], ErrUnknown, pg.OrNull(chargeID), pg.OrNull(intentID))
}
