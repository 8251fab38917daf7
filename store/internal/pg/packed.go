package pg

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5"

	"purser/ids"
)

// PackedSetting is a session's promise to look event ids up in packed_ids too. Once events
// are packed, usage_events refuses rows of sessions without it: see migrations.PackingFence.
const PackedSetting = "purser.reads_packed"

const (
	// PackedBlock is one block of packed events with its events: p is the block, u an event.
	// A statement adds WHERE p.app_id = $1 and which blocks it needs.
	PackedBlock = `packed_events p` + eventsOfBlock

	blockColumns = ` org_id, wallet_id, seqs, tx_ids, event_ids, key_ids, price_numbers, quantities, created_ats, amounts, balances_after, occurred_ats, period_starts, period_ends,
				deduplicated_froms, entity_ids, debts, quoteds, basis_points, allowance_limits, allowance_useds, allowance_starts, allowance_ends, allowance_overages`

	eventsOfBlock = ` CROSS JOIN LATERAL unnest(p.seqs, p.tx_ids, p.event_ids, p.key_ids, p.price_numbers, p.quantities, p.created_ats,
			p.amounts, p.balances_after, p.occurred_ats, p.period_starts, p.period_ends, p.deduplicated_froms, p.entity_ids, p.debts, p.quoteds, p.basis_points,
			p.allowance_limits, p.allowance_useds, p.allowance_starts, p.allowance_ends, p.allowance_overages)
		AS u (seq, tx_id, packed_id, key_id, price_number, quantity, created_at,
			amount_nanocredits, balance_after, occurred_at, period_start, period_end, deduplicated_from, entity_id, debt_after, quoted_nanocredits, basis_points,
			allowance_limit, allowance_used, allowance_start, allowance_end, allowance_overage)`

	// PackedColumns are the columns of a packed event under their names in usage_events.
	PackedColumns = ` p.org_id, p.wallet_id, u.seq, u.tx_id, '\x00'::bytea || uuid_send(u.packed_id) AS event_id, u.key_id, u.price_number, u.quantity, u.created_at,
		u.amount_nanocredits, u.balance_after, u.occurred_at, u.period_start, u.period_end, u.deduplicated_from, u.entity_id, u.debt_after, u.quoted_nanocredits, u.basis_points,
		u.allowance_limit, u.allowance_used, u.allowance_start, u.allowance_end, u.allowance_overage`

	// PackedRange are the packed events of the wallet $2 between the numbers $3 and $4.
	PackedRange = `
		SELECT` + PackedColumns + `
		FROM ` + PackedBlock + `
		WHERE p.app_id = $1 AND p.wallet_id = $2 AND p.last_seq > $3 AND p.first_seq < $4 AND u.seq > $3 AND u.seq < $4`

	// PackedNewest are at least the newest $4 packed events and one more of the wallet $2
	// before the number $3, if it has them. Of the first block it may need no event, and of
	// each other one at least one.
	PackedNewest = `
		SELECT` + PackedColumns + `
		FROM ` + PackedBlock + `
		WHERE p.app_id = $1 AND p.wallet_id = $2 AND p.first_seq < $3 AND u.seq < $3 AND p.last_seq >= coalesce((
			SELECT k.last_seq
			FROM (
				SELECT b.last_seq, sum(b.events) OVER (ORDER BY b.last_seq DESC) AS total, row_number() OVER (ORDER BY b.last_seq DESC) AS place
				FROM packed_events b WHERE b.app_id = $1 AND b.wallet_id = $2 AND b.first_seq < $3
				ORDER BY b.last_seq DESC LIMIT $4::bigint + 2
			) k
			WHERE k.total > $4::bigint + 1000 OR k.place = $4::bigint + 2 ORDER BY k.last_seq DESC LIMIT 1), 0)`

	// PackedPlaces are the wallets and numbers of the packed events with the id t.id. One
	// that two runs have in their lists is there twice.
	PackedPlaces = `
		SELECT i.wallet_ids[i.refs[array_position(i.ids, t.id)]] AS wallet_id, i.seqs[array_position(i.ids, t.id)] AS seq
		FROM packed_runs r CROSS JOIN LATERAL (
			SELECT ids, wallet_ids, refs, seqs FROM packed_ids WHERE app_id = $1 AND run = r.run AND last_id >= t.id ORDER BY last_id LIMIT 1) i
		WHERE r.app_id = $1 AND array_position(i.ids, t.id) IS NOT NULL`

	// PackedByID is the packed event with the id t.id. Its block is looked up by the key,
	// whatever the planner knows about the table, and of its columns only the one value is
	// read: unnest would make a row of each of its events.
	PackedByID = `
		SELECT p.org_id, p.wallet_id, p.seqs[p.i] AS seq, p.tx_ids[p.i] AS tx_id, '\x00'::bytea || uuid_send(p.event_ids[p.i]) AS event_id, p.key_ids[p.i] AS key_id,
			p.price_numbers[p.i] AS price_number, p.quantities[p.i] AS quantity, p.created_ats[p.i] AS created_at, p.amounts[p.i] AS amount_nanocredits,
			p.balances_after[p.i] AS balance_after, p.occurred_ats[p.i] AS occurred_at, p.period_starts[p.i] AS period_start, p.period_ends[p.i] AS period_end,
			p.deduplicated_froms[p.i] AS deduplicated_from, p.entity_ids[p.i] AS entity_id, p.debts[p.i] AS debt_after, p.quoteds[p.i] AS quoted_nanocredits,
			p.basis_points[p.i] AS basis_points, p.allowance_limits[p.i] AS allowance_limit, p.allowance_useds[p.i] AS allowance_used,
			p.allowance_starts[p.i] AS allowance_start, p.allowance_ends[p.i] AS allowance_end, p.allowance_overages[p.i] AS allowance_overage
		FROM (` + PackedPlaces + `) f CROSS JOIN LATERAL (
			SELECT` + blockColumns + `, array_position(seqs, f.seq) AS i
			FROM packed_events WHERE app_id = $1 AND wallet_id = f.wallet_id AND last_seq >= f.seq
			ORDER BY last_seq LIMIT 1) p
		WHERE p.event_ids[p.i] = t.id
		LIMIT 1`

	// PackedByTransaction is the packed event of the transaction $2. The order has the blocks
	// of its time read by their index: one or two of each wallet, until the event is found.
	PackedByTransaction = `
		SELECT` + PackedColumns + `
		FROM (
			SELECT` + blockColumns + `
			FROM packed_events WHERE app_id = $1 AND last_tx >= $2 AND first_tx <= $2 AND array_position(tx_ids, $2) IS NOT NULL
			ORDER BY last_tx LIMIT 1) p` + eventsOfBlock + `
		WHERE u.tx_id = $2`

	// PackedSince is false when all packed transactions are before $2: no block is read then.
	PackedSince = ` $2 <= (SELECT r.last_tx FROM packed_runs r WHERE r.app_id = $1 ORDER BY r.last_tx DESC LIMIT 1)`
)

// PackableID is the UUIDv7 of an event id as it is stored; ok is false for any other id. Only
// these are packed: their own time tells whether one has to be looked up.
func PackableID(stored []byte) (id ids.ID, ok bool) {
	if len(stored) != len(id)+1 || stored[0] != 0 {
		return id, false
	}
	id = ids.ID(stored[1:])
	return id, id[6]>>4 == 7 && id[8]>>6 == 2
}

// PackableIDs has the UUIDv7 of an event id as it is stored, or nothing.
func PackableIDs(stored []byte) []ids.ID {
	if id, ok := PackableID(stored); ok {
		return []ids.ID{id}
	}
	return []ids.ID{}
}

// MayBePacked returns the id of an event that may be packed, when events before a time are.
func MayBePacked(eventID string, before int64) (id ids.ID, may bool) {
	if before == 0 {
		return id, false
	}
	id, ok := PackableID(EncodeEventID(eventID))
	return id, ok && TimeOfID(id) < before
}

// ConnectOwner opens a connection with the rights of the owner, past the serving role. Tables
// of applications keep their walls.
func ConnectOwner(ctx context.Context, address string, log *slog.Logger) (*pgx.Conn, error) {
	conn, s, err := connectAndExamine(ctx, address, log)
	if err != nil {
		return nil, err
	}
	switch {
	case s.Citus:
		err = errors.New("store: the tables are distributed over a Citus cluster, where events can't be packed")
	case !s.Owns:
		err = fmt.Errorf("store: the login %s does not own the tables: packing events needs the owner's login, which is %s", s.Login, s.Owner)
	default:
		return conn, nil
	}
	return nil, errors.Join(err, conn.Close(context.WithoutCancel(ctx)))
}

// OwnerTransaction runs work in one transaction of an application, on a connection of the
// owner.
func OwnerTransaction(ctx context.Context, conn *pgx.Conn, app App, work func(context.Context, *Tx) error) error {
	return Retry(ctx, func() error {
		if _, err := app.begin(ctx, conn); err != nil {
			return fmt.Errorf("store: begin: %w", err)
		}
		if err := work(ctx, &Tx{Conn: conn, Scope: app.Scope, By: app.By}); err != nil {
			Rollback(ctx, conn)
			return err
		}
		return commit(ctx, conn)
	})
}
