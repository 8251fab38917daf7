package verify

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"purser/ids"
	"purser/store/internal/pg"
)

const (
	ruleFeed       = "notifications are numbered without a gap"
	ruleDeliveries = "each delivery is of a notification, for an endpoint, after the one before it"
	ruleAnnounced  = "entries are announced as the journal has them"
)

const (
	// feedPage is how many notifications one snapshot compares with their entries and
	// deliveries.
	feedPage = 2000
	// numberedWithin is how long after a notification the application may be at work before
	// it has a number. Sequencers number at once, and once a minute what was left.
	numberedWithin = time.Hour
)

var (
	// What was made last shows that the application was at work, whatever the clock says
	// now: a restored backup may be old.
	verifyFeedState = pg.Declare("verify feed", `
		SELECT coalesce(f.last_seq, 0), coalesce(f.oldest_seq, 1), coalesce(f.verified_seq, 0),
			coalesce((SELECT max(n.seq) FROM notifications n WHERE n.app_id = $1), 0),
			coalesce((SELECT n.id FROM notifications n WHERE n.app_id = $1 AND n.seq IS NOT NULL ORDER BY n.seq LIMIT 1), $2),
			coalesce((SELECT n.id FROM notifications n WHERE n.app_id = $1 AND n.seq = f.verified_seq), $2),
			greatest(
				(SELECT n.id FROM notifications n WHERE n.app_id = $1 ORDER BY n.id DESC LIMIT 1),
				(SELECT j.id FROM journal j WHERE j.app_id = $1 ORDER BY j.id DESC LIMIT 1), $2)
		FROM app_state s LEFT JOIN feeds f ON f.app_id = $1
		WHERE s.app_id = $1`)

	verifyEndpoints = pg.Declare("verify endpoints", `
		SELECT e.id, e.url, e.last_seq FROM webhook_endpoints e WHERE e.app_id = $1`)

	verifyUnnumbered = pg.Declare("verify notifications to number", `
		SELECT w.id, w.identity, 'the notification ' || n.id || ' (' || n.type || ') never got a number, though the application was at work for an hour after it'
		FROM notifications n LEFT JOIN wallets w ON w.app_id = $1 AND w.id = n.wallet_id
		WHERE n.app_id = $1 AND n.seq IS NULL AND NOT n.test AND n.id < $2
		LIMIT $3`)

	// From the newest to the oldest: the numbers of later notifications are above, and the
	// retention deletes below.
	verifyFeedPage = pg.Declare("verify feed page", `
		SELECT n.id, n.org_id, n.seq, n.type, n.wallet_id, CASE WHEN n.type = ANY ($4) THEN n.data::text ELSE '' END
		FROM notifications n
		WHERE n.app_id = $1 AND n.seq < $2 AND n.seq >= $5
		ORDER BY n.seq DESC LIMIT $3`)

	verifyFeedStart = pg.Declare("verify start of feed", `
		SELECT f.oldest_seq FROM feeds f WHERE f.app_id = $1`)

	verifyAnnouncedEntries = pg.Declare("verify announced entries", `
		SELECT j.id, j.wallet_id, j.kind, j.credit_id, j.delta_nanocredits::text, j.balance_after::text, j.debt_after::text
		FROM unnest($2::uuid[]) AS t (id) CROSS JOIN LATERAL (
			SELECT id, wallet_id, kind, credit_id, delta_nanocredits, balance_after, debt_after
			FROM journal WHERE app_id = $1 AND id = t.id
			LIMIT 1) j`)

	verifyPageDeliveries = pg.Declare("verify deliveries of a page", `
		SELECT d.endpoint_id, d.notification_id, d.org_id, d.seq, d.previous_seq
		FROM unnest($2::uuid[]) AS t (id) CROSS JOIN LATERAL (
			SELECT endpoint_id, notification_id, org_id, seq, previous_seq
			FROM deliveries WHERE app_id = $1 AND notification_id = t.id
			LIMIT 1000) d`)

	recordFeed = pg.Declare("record verified feed", `
		UPDATE feeds SET verified_seq = $2 WHERE app_id = $1 AND verified_seq < $2`)
)

// verifyStrayDeliveries finds deliveries that no notification of the feed leads to.
var verifyStrayDeliveries = pagedCheck{verifyCheck{holds: ruleDeliveries, statement: pg.Declare("verify deliveries", `
		SELECT NULL::uuid, NULL::text, 'a delivery names the notification ' || d.notification_id || ' and the endpoint ' || d.endpoint_id || CASE
			WHEN n.id IS NULL THEN ', but there is no such notification'
			WHEN e.id IS NULL AND x.id IS NULL THEN ', but there never was such an endpoint'
			ELSE ', with the number ' || d.seq || ', but the notification has ' || coalesce(n.seq::text, 'none') END
		FROM deliveries d
		LEFT JOIN notifications n ON n.app_id = $1 AND n.id = d.notification_id
		LEFT JOIN webhook_endpoints e ON e.app_id = $1 AND e.id = d.endpoint_id
		LEFT JOIN deleted_endpoints x ON x.app_id = $1 AND x.id = d.endpoint_id
		WHERE d.app_id = $1 AND d.notification_id > $2 AND d.notification_id <= $4
		  AND (n.id IS NULL OR e.id IS NULL AND x.id IS NULL OR coalesce(n.seq, 0) <> d.seq)
		LIMIT $3`)},
	pg.Declare("verify ranges of deliveries", `
		SELECT d.notification_id FROM deliveries d WHERE d.app_id = $1 AND d.notification_id > $2
		ORDER BY d.notification_id OFFSET $3 - 1 LIMIT 1`)}

// feedState is a feed at the start of its verification.
type feedState struct {
	Last, Oldest, Verified int64
	Highest                int64  // number of a notification
	First                  ids.ID // the notification with the lowest number
	VerifiedID             ids.ID // the notification up to which a recorded pass came; zero for none
	Latest                 ids.ID // the last that the application made
}

// verifiedEndpoint is an endpoint while its deliveries are followed, from its newest to
// the oldest that is kept: the sequencer links each to the one before.
type verifiedEndpoint struct {
	ID   ids.ID
	URL  string
	Next int64 // the number of the next delivery on the way back; zero at its end
}

// checkFeed verifies the numbers of notifications, what they say of entries, and their
// deliveries: all that are kept, or those that no recorded pass has verified.
func (p *verifyPass) checkFeed(ctx context.Context) error {
	var state feedState
	endpoints := map[ids.ID]*verifiedEndpoint{}
	err := p.read(ctx, func(ctx context.Context, tx appTx) error {
		states, err := pg.Collect(ctx, tx, verifyFeedState, pgx.RowToStructByPos[feedState], ids.ID{})
		if err != nil || len(states) != 1 {
			return err
		}
		state = states[0]
		list, err := pg.Collect(ctx, tx, verifyEndpoints, pgx.RowToAddrOfStructByPos[verifiedEndpoint])
		clear(endpoints)
		for _, e := range list {
			endpoints[e.ID] = e
		}
		return err
	})
	if finished, err := p.finished(ctx, ruleFeed, err); !finished {
		return err
	}
	before := len(p.result.Differences)
	if state.Last != state.Highest && (state.Highest > 0 || state.Last >= state.Oldest) {
		p.report(Difference{Check: ruleFeed, Detail: fmt.Sprintf("the feed ends with number %d, but the highest number of a notification is %d", state.Last, state.Highest)})
	}
	stale := verifyCheck{holds: ruleFeed, statement: verifyUnnumbered}
	if _, _, err := p.differences(ctx, stale, pg.IDAt(pg.TimeOfID(state.Latest)-numberedWithin.Milliseconds()), maxDifferences+1); err != nil {
		return err
	}
	from := int64(0)
	if !p.options.all() {
		from = state.Verified
	}
	walk := feedWalk{pass: p, from: from, next: max(state.Last, state.Highest) + 1, endpoints: endpoints, limit: min(p.options.Page, feedPage)}
	for !walk.done {
		finished, err := p.finished(ctx, ruleFeed, p.read(ctx, walk.step))
		if err != nil || !finished {
			return err
		}
		walk.compare()
		if err := pauseFor(ctx, p.options.Pause); err != nil {
			return err
		}
	}
	if p.options.all() {
		if err := p.checkPages(ctx, verifyStrayDeliveries); err != nil {
			return err
		}
	}
	if err := p.checkAnnouncements(ctx, state); err != nil {
		return err
	}
	if !p.options.Record || len(p.result.Differences) > before {
		return nil
	}
	return p.app.app.ExecAny(ctx, recordFeed, state.Last)
}
