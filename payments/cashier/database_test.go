package cashier_test

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"purser/billing"
	"purser/ids"
	"purser/metering"
	"purser/store/storetest"
	"purser/tenancy"
)

// stealLease gives ada's lease to another holder in one statement, as if its time had run
// out and the other was first: no renewal can come in between. The other holds it for the
// length of time.
func (r *harness) stealLease(length time.Duration) {
	r.Helper()
	storetest.Exec(r, storetest.URL(r), `
		UPDATE leases SET holder = $4, fence = fence + 1,
			held_until = (extract(epoch FROM now()) * 1000)::bigint + $3
		WHERE app_id = $1 AND name = $2`, r.app.ID, leaseOf("ada"), length.Milliseconds(), ids.New())
}

// leasesHeld counts the leases of the application that have not run out.
func (r *harness) leasesHeld() int {
	r.Helper()
	return storetest.Value[int](r, storetest.URL(r), `
		SELECT count(*) FROM leases
		WHERE app_id = $1 AND holder <> '00000000-0000-0000-0000-000000000000'
			AND held_until > extract(epoch FROM clock_timestamp()) * 1000`, r.app.ID)
}

// paymentsOf lists what an identity has paid or was given by a plan, the latest first.
func paymentsOf(tb rapid.TB, url string, scope tenancy.Scope, identity string) (list []billing.Payment) {
	tb.Helper()
	storetest.OnConnection(tb, url, func(ctx context.Context, conn *pgx.Conn) (err error) {
		rows, _ := conn.Query(ctx, `
			SELECT p.source_kind, p.source_id, p.amount_cents, p.currency, coalesce(p.intent_id, ''), coalesce(p.charge_id, ''),
				coalesce(p.plan_id, '00000000-0000-0000-0000-000000000000'), coalesce(p.period_start, 0), coalesce(p.period_end, 0), p.free,
				p.refunded_cents, p.disputed_cents, p.balance_cents
			FROM provider_payments p JOIN wallets w ON w.app_id = p.app_id AND w.id = p.wallet_id
			WHERE p.app_id = $1 AND w.identity = $2 ORDER BY p.created_at DESC, p.source_id`, scope.AppID, identity) // CollectRows returns its error
		list, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (p billing.Payment, err error) {
			err = row.Scan(&p.Source.Kind, &p.Source.ID, &p.AmountCents, &p.Currency, &p.IntentID, &p.ChargeID,
				&p.PlanID, &p.Period.Start, &p.Period.End, &p.Free, &p.RefundedCents, &p.DisputedCents, &p.BalanceCents)
			return p, err
		})
		for i := range list {
			if err == nil {
				err = readCredits(ctx, conn, scope, &list[i])
			}
		}
		return err
	})
	return list
}

func readCredits(ctx context.Context, conn *pgx.Conn, scope tenancy.Scope, p *billing.Payment) error {
	rows, _ := conn.Query(ctx, `
		SELECT p.credit_id, c.key, p.amount_nanocredits::text, p.taken_back_nanocredits::text
		FROM payment_credits p JOIN credits c ON c.app_id = p.app_id AND c.id = p.credit_id
		WHERE p.app_id = $1 AND p.source_kind = $2 AND p.source_id = $3 ORDER BY p.position`, scope.AppID, p.Source.Kind, p.Source.ID) // CollectRows returns its error
	_, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (struct{}, error) {
		var brought billing.Grant
		var amount, takenBack string
		if err := row.Scan(&brought.CreditID, &brought.CreditKey, &amount, &takenBack); err != nil {
			return struct{}{}, err
		}
		taken, isAmount := brought, true
		if brought.Amount, isAmount = metering.ParseAmount(amount); !isAmount {
			return struct{}{}, fmt.Errorf("%s is not an amount", amount)
		}
		if taken.Amount, isAmount = metering.ParseAmount(takenBack); !isAmount {
			return struct{}{}, fmt.Errorf("%s is not an amount", takenBack)
		}
		p.Credits = append(p.Credits, brought)
		if taken.Amount > 0 {
			p.TakenBack = append(p.TakenBack, taken)
		}
		return struct{}{}, nil
	})
	return err
}
