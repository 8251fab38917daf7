package verify

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"github.com/jackc/pgx/v5"

	"purser/ids"
	"purser/metering"
	"purser/store/internal/pg"
	"purser/store/internal/wire"
)

// A wallet's seal is a chain of hashes: the first one is over who the wallet
// belongs to, each next one over the one before and every stored value of an entry.
// Whatever is changed, moved, added or erased later gives another seal. A wallet that
// gets another identity is sealed again: see Reseal.

type journalSeal [sha256.Size]byte

// sealFormat is hashed first. Another set of values gets another number.
const sealFormat = 1

func firstSeal(app, wallet ids.ID, identity string) journalSeal {
	buf := append([]byte{sealFormat}, app[:]...)
	buf = append(buf, wallet[:]...)
	return sha256.Sum256(append(buf, identity...))
}

// next is the seal after one more entry. The buffer is reused by the caller.
func (s journalSeal) next(buf []byte, e *verifiedEntry) (journalSeal, []byte) {
	buf = append(buf[:0], s[:]...)
	buf = e.appendValues(buf)
	return sha256.Sum256(buf), buf
}

// appendValues writes every stored value in an order that stays: numbers with eight
// bytes, texts after their length, and what may be NULL after a byte that tells.
func (e *verifiedEntry) appendValues(buf []byte) []byte {
	buf = append(buf, wire.BoolByte(e.event))
	buf = append(buf, e.org[:]...)
	buf = append(buf, e.id[:]...)
	buf = appendInt(buf, e.seq)
	buf = appendInt(buf, e.createdAt)
	buf = appendInt(buf, int64(e.balanceAfter))
	if !e.event {
		buf = appendInt(buf, int64(e.debtAfter))
		buf = appendText(buf, string(e.kind))
		buf = append(buf, e.credit[:]...)
		buf = appendInt(buf, int64(e.delta.Amount))
		buf = append(buf, wire.BoolByte(e.delta.Out))
		buf = appendOptional(buf, e.idempotencyKey, appendText)
		buf = appendOptional(buf, e.sourceKind, appendText)
		return appendOptional(buf, e.sourceID, appendText)
	}
	buf = appendText(buf, e.eventID)
	buf = append(buf, e.keyID[:]...)
	buf = appendInt(buf, e.priceNumber)
	buf = appendInt(buf, e.quantity)
	buf = appendInt(buf, int64(e.amount))
	for _, v := range []optionalValue[int64]{
		e.occurredAt, e.periodStart, e.periodEnd, e.limit, e.used, e.limitStart, e.limitEnd, e.basisPoints,
	} {
		buf = appendOptional(buf, v, appendInt)
	}
	buf = appendOptional(buf, e.quoted, appendAmount)
	buf = appendOptional(buf, e.debtStored, appendAmount)
	buf = append(buf, e.original[:]...)
	buf = appendOptional(buf, e.overage, appendText)
	return appendOptional(buf, e.entityID, appendText)
}

func appendInt(buf []byte, v int64) []byte { return binary.BigEndian.AppendUint64(buf, uint64(v)) }

func appendAmount(buf []byte, a metering.Amount) []byte { return appendInt(buf, int64(a)) }

func appendText(buf []byte, text string) []byte {
	return append(appendInt(buf, int64(len(text))), text...)
}

func appendOptional[T any](buf []byte, v optionalValue[T], write func([]byte, T) []byte) []byte {
	buf = append(buf, wire.BoolByte(v.set))
	if !v.set {
		return buf
	}
	return write(buf, v.value)
}

var (
	// Two passes at once do no harm: the one that came further stays. Nothing is sealed
	// for a wallet that got another identity since the pass read it ($11), or replaces a
	// seal that was made for another identity than the one that the pass began with ($12).
	sealWallets = pg.Declare("seal wallets", `
		INSERT INTO wallet_seals (app_id, org_id, wallet_id, seq, seal, sealed_at, billed, credit_ids, amounts, debts)
		SELECT s.app_id, $2::uuid, w.id, $4::bigint, $5::bytea, $6::bigint, $7::bigint, $8::uuid[], $9::numeric[], $10::numeric[]
		FROM app_state s CROSS JOIN wallets w
		WHERE s.app_id = $1 AND w.app_id = $1 AND w.id = $3 AND w.identity = $11
			AND NOT EXISTS (SELECT 1 FROM pending_seals p WHERE p.app_id = $1 AND p.wallet_id = w.id)
		ON CONFLICT (app_id, wallet_id) DO UPDATE SET
			seq = excluded.seq, seal = excluded.seal, sealed_at = excluded.sealed_at, billed = excluded.billed,
			credit_ids = excluded.credit_ids, amounts = excluded.amounts, debts = excluded.debts
		WHERE wallet_seals.seq < excluded.seq AND wallet_seals.seal = $12`)

	rememberSealed = pg.Declare("remember sealed wallets", `
		INSERT INTO sealed_wallets (app_id, org_id, wallet_id, sealed_at)
		SELECT s.app_id, s.org_id, t.id, $3
		FROM app_state s CROSS JOIN unnest($2::uuid[]) AS t (id)
		WHERE s.app_id = $1
		ON CONFLICT (app_id, wallet_id) DO NOTHING`)

	sealCounters = pg.Declare("seal counters", `
		INSERT INTO sealed_counters (app_id, org_id, wallet_id, feature_id, period_start, period_end, used)
		SELECT s.app_id, s.org_id, $2, t.feature_id, t.period_start, t.period_end, t.used
		FROM app_state s CROSS JOIN unnest($3::uuid[], $4::bigint[], $5::bigint[], $6::bigint[])
			AS t (feature_id, period_start, period_end, used)
		WHERE s.app_id = $1
		ON CONFLICT (app_id, wallet_id, feature_id, period_start, period_end) DO UPDATE SET used = excluded.used`)
)

// record stores how far wallets were verified. A wallet with a difference keeps its
// earlier seal, so that every later pass finds the difference again.
func (p *verifyPass) record(ctx context.Context, walked []verifyRange) error {
	var sealed []*walletProof
	var unmarked []ids.ID
	for _, r := range walked {
		if !r.proof.known || r.proof.broken || r.proof.pending {
			continue
		}
		if r.proof.seq > r.proof.sealedSeq {
			sealed = append(sealed, r.proof)
		}
		if r.proof.unmarked {
			unmarked = append(unmarked, r.proof.wallet)
		}
	}
	if len(sealed)+len(unmarked) == 0 {
		return nil
	}
	// In the order of wallets, so that two passes never wait for each other.
	slices.SortFunc(sealed, func(a, b *walletProof) int { return slices.Compare(a.wallet[:], b.wallet[:]) })
	err := p.app.transact(ctx, func(ctx context.Context, tx appTx) error {
		if err := tx.setForVerification(ctx); err != nil {
			return err
		}
		moved, err := tx.seal(ctx, sealed, p.options.Now)
		if err != nil {
			return err
		}
		marked := slices.Concat(moved, unmarked)
		slices.SortFunc(marked, func(a, b ids.ID) int { return slices.Compare(a[:], b[:]) })
		_, err = tx.ExecAny(ctx, rememberSealed, slices.Compact(marked), p.options.Now)
		return err
	})
	if err != nil {
		return err
	}
	for _, proof := range sealed {
		proof.sealedSeq, proof.stored = proof.seq, proof.seal
		clear(proof.touched)
	}
	return nil
}

// seal writes the seals of wallets in one round trip, and the counters of those whose
// seal has moved. It returns these.
func (tx appTx) seal(ctx context.Context, list []*walletProof, now int64) (sealed []ids.ID, err error) {
	batch := &pgx.Batch{}
	for _, proof := range list {
		credits, amounts, debts := proof.balanceArrays()
		batch.Queue(sealWallets.SQL, tx.Args([]any{tx.Scope.OrgID, proof.wallet, proof.seq, proof.seal[:], now, proof.billed, credits, amounts, debts,
			proof.identity, proof.stored[:]})...)
	}
	moved := make([]bool, len(list))
	results := tx.Conn.SendBatch(ctx, batch)
	for i := range list {
		tag, err := results.Exec()
		if err != nil {
			_ = results.Close()
			return nil, err
		}
		moved[i] = tag.RowsAffected() == 1
	}
	if err := results.Close(); err != nil {
		return nil, err
	}
	for i, proof := range list {
		if moved[i] {
			sealed = append(sealed, proof.wallet)
		}
		if !moved[i] || len(proof.touched) == 0 {
			continue
		}
		var features []ids.ID
		var starts, ends, used []int64
		for key := range proof.touched {
			features, starts, ends = append(features, key.FeatureID), append(starts, key.Period.Start), append(ends, key.Period.End)
			used = append(used, proof.counters[key])
		}
		if err := tx.Exec(ctx, sealCounters, int64(len(features)), proof.wallet, features, starts, ends, used); err != nil {
			return nil, err
		}
	}
	return sealed, nil
}
