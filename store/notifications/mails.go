package notifications

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"purser/ids"
	"purser/notify"
	"purser/store/internal/pg"
)

const (
	// maxMailScan is how many numbers one pass goes through, and MaxMailed how many
	// notifications it mails.
	maxMailScan = 5000
	MaxMailed   = 100
	budgetHour  = time.Hour
)

var (
	selectMailed = pg.Declare("select mailed notifications", `
		SELECT mailed_seq, last_seq FROM feeds WHERE app_id = $1`)

	listUnmailed = pg.Declare("list notifications to mail", `
		SELECT `+notificationColumns+`
		FROM notifications n LEFT JOIN wallets w ON w.app_id = $1 AND w.id = n.wallet_id
		WHERE n.app_id = $1 AND n.seq > $2 AND n.seq <= $3 AND n.type = ANY ($4) AND n.id >= $5
		ORDER BY n.seq LIMIT $6`)

	advanceMailed = pg.Declare("advance mailed notifications", `
		UPDATE feeds SET mailed_seq = $3 WHERE app_id = $1 AND mailed_seq = $2`)
)

// Unmailed is the next part of the feed that members are mailed about.
type Unmailed struct {
	After, Upto   int64 // the numbers that it covers; equal when there is nothing
	Notifications []notify.Notification
}

// Unmailed reads the next part of the feed: notifications of the types that were made
// since a time of the database's clock.
func (a App) Unmailed(ctx context.Context, types []notify.Type, since int64) (Unmailed, error) {
	return pg.Return(ctx, a.app.Snapshot, func(ctx context.Context, tx *pg.Tx) (u Unmailed, err error) {
		type position struct{ Mailed, Last int64 }
		at, err := pg.Collect(ctx, tx, selectMailed, pgx.RowToStructByPos[position])
		if err != nil || len(at) == 0 {
			return u, err
		}
		u = Unmailed{After: at[0].Mailed, Upto: min(at[0].Last, at[0].Mailed+maxMailScan)}
		if u.After == u.Upto {
			return u, nil
		}
		u.Notifications, err = pg.Collect(ctx, tx, listUnmailed, readNotification, u.After, u.Upto, typeNames(types), pg.IDAt(since), MaxMailed)
		if len(u.Notifications) == MaxMailed {
			u.Upto = u.Notifications[MaxMailed-1].Seq
		}
		return u, err
	})
}

// Addressed are the mails to one person about a part of the feed: those about alerts, or
// the others. Each kind has a budget of its own.
type Addressed struct {
	UserID ids.ID
	Alerts bool
	Wanted int       // notifications that the person wants to be mailed about
	Mails  []pg.Mail // of the first of them, as many as an hour has
	Rest   pg.Mail   // says that there are more
}

// FinishMailing queues the mails about a part of the feed and moves past it, in one
// transaction: each person is mailed about a notification once. When another node did so
// meanwhile, nothing is queued. Now goes by the database's clock.
func (a App) FinishMailing(ctx context.Context, u Unmailed, list []Addressed, now int64) error {
	// In one order, so that transactions of several applications don't deadlock.
	slices.SortFunc(list, func(a, b Addressed) int { return bytes.Compare(a.UserID[:], b.UserID[:]) })
	return a.app.Transact(ctx, func(ctx context.Context, tx *pg.Tx) error {
		moved, err := tx.ExecAny(ctx, advanceMailed, u.After, u.Upto)
		if err != nil || moved == 0 {
			return err
		}
		for _, to := range list {
			if err := queueWithinBudget(ctx, tx.Conn, to, now); err != nil {
				return err
			}
		}
		return nil
	})
}

// queueWithinBudget queues as many mails as the person may get in this hour.
func queueWithinBudget(ctx context.Context, conn *pgx.Conn, to Addressed, now int64) error {
	var before, alerts, notices int
	counted := &notices
	if to.Alerts {
		counted = &alerts
	}
	*counted = to.Wanted
	err := conn.QueryRow(ctx, `
		INSERT INTO mail_budgets AS b (user_id, since, sent, notices) VALUES ($1, $2, $4, $5)
		ON CONFLICT (user_id) DO UPDATE SET
			since   = CASE WHEN b.since <= $3 THEN $2 ELSE b.since END,
			sent    = CASE WHEN b.since <= $3 THEN $4 ELSE b.sent + $4 END,
			notices = CASE WHEN b.since <= $3 THEN $5 ELSE b.notices + $5 END
		RETURNING CASE WHEN $6 THEN sent - $4 ELSE notices - $5 END`,
		to.UserID, now, now-budgetHour.Milliseconds(), alerts, notices, to.Alerts).Scan(&before)
	if err != nil {
		return fmt.Errorf("store: mail budget: %w", err)
	}
	send, rest := notify.MailBudget(before, to.Wanted)
	mails := to.Mails[:min(send, len(to.Mails))]
	if rest {
		mails = append(slices.Clip(mails), to.Rest)
	}
	return pg.QueueMail(ctx, conn, mails...)
}
