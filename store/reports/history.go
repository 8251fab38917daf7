package reports

import (
	"context"
	"maps"
	"math"

	"github.com/jackc/pgx/v5"

	"purser/fault"
	"purser/ids"
	"purser/metering"
	"purser/store/internal/ledger"
	"purser/store/internal/pg"
)

// A wallet's entries are numbered without gaps over `journal` and `usage_events`, so a
// range of numbers is a range of rows, and a read of it has a known cost.
const (
	// historyRange is how many entries one statement reads when a list is filtered.
	historyRange = 2_000
	// maxHistoryRanges bounds one page; after them the list returns a partial page.
	maxHistoryRanges = 10
	// maxBalanceRange is how many entries one statement reads at most when a balance is
	// looked for. It returns few of them.
	maxBalanceRange = 32_000
)

// HistoryQuery filters the entries of one wallet: newest first, or ascending from a
// number.
type HistoryQuery struct {
	Identity  string
	CreditKey string             // all when empty
	Kind      metering.EntryKind // all when empty
	From, To  int64              // half-open, in milliseconds; 0 for none
	// Whole has a period begin and end at a number, so that its entries lead from the
	// balances at its beginning to those at its end. See firstFrom.
	Whole bool

	Ascending bool
	Position  ledger.Position // ascending: entries after it; otherwise before it, zero for the newest
	Limit     int
}

// times are between which entries are listed, out of the range of numbers.
func (q HistoryQuery) times() (from, to int64) {
	switch {
	case q.Whole:
		return 0, lastMoment
	case q.To == 0:
		return q.From, lastMoment
	default:
		return q.From, q.To
	}
}

func (q HistoryQuery) filtered() bool {
	return q.CreditKey != "" || q.Kind != "" || q.From != 0 || q.To != 0
}

var (
	listHistory = pg.Declare("list history", `
		SELECT`+lineColumns+`
		FROM (
			SELECT`+entryLineColumns+`
			FROM journal j
			WHERE j.app_id = $1 AND j.wallet_id = $2 AND j.seq > $3 AND j.seq < $4 AND $5 IS DISTINCT FROM 'charge'
			UNION ALL
			SELECT`+chargeLineColumns+`
			FROM usage_events e
			WHERE e.app_id = $1 AND e.wallet_id = $2 AND e.seq > $3 AND e.seq < $4 AND coalesce($5::text, 'charge') = 'charge'
			UNION ALL
			SELECT`+chargeLineColumns+`
			FROM (`+pg.PackedRange+`) e
			WHERE coalesce($5::text, 'charge') = 'charge'
		) l
		WHERE ($5::text IS NULL OR l.kind = $5) AND ($6::uuid IS NULL OR l.credit_id = $6) AND l.created_at >= $7 AND l.created_at < $8
		ORDER BY CASE WHEN $9 THEN l.seq ELSE -l.seq END LIMIT $10`)

	listEventsInRange = pg.Declare("list events in a range", `
		SELECT`+eventFoundColumns+`
		FROM (
			SELECT`+storedEventColumns+`
			FROM (
				SELECT`+storedEventColumns+`
				FROM usage_events WHERE app_id = $1 AND wallet_id = $2 AND seq > $3 AND seq < $4
				UNION ALL
				SELECT`+storedEventColumns+` FROM (`+pg.PackedRange+`) packed
			) ranged
			WHERE `+ofFeature+` AND created_at >= $6 AND created_at < $7
			ORDER BY seq DESC LIMIT $8
		) e`+eventFoundJoins+`
		ORDER BY e.seq DESC`)

	// The newest entry of each credit in a range of numbers that is no charge.
	listLastInJournal = pg.Declare("list last journal entries of credits", `
		SELECT j.credit_id, j.seq, j.balance_after, j.debt_after
		FROM (
			SELECT max(seq) AS seq FROM journal WHERE app_id = $1 AND wallet_id = $2 AND seq > $3 AND seq < $4 GROUP BY credit_id
		) newest JOIN journal j ON j.app_id = $1 AND j.wallet_id = $2 AND j.seq = newest.seq`)

	listNewestInJournal = pg.Declare("list newest journal entries of credits", `
		SELECT credit_id, max(seq) FROM journal WHERE app_id = $1 AND wallet_id = $2 AND seq >= $3 AND credit_id = ANY ($4) GROUP BY credit_id`)

	// The newest charge of each price in a range of numbers.
	listLastCharges = pg.Declare("list last charges of prices", `
		SELECT p.credit_id, l.seq, l.balance_after, coalesce(l.debt_after, 0)
		FROM (
			SELECT DISTINCT ON (e.price_number) e.price_number, e.seq, e.balance_after, e.debt_after
			FROM (
				SELECT price_number, seq, balance_after, debt_after
				FROM usage_events WHERE app_id = $1 AND wallet_id = $2 AND seq > $3 AND seq < $4
				UNION ALL
				SELECT price_number, seq, balance_after, debt_after FROM (`+pg.PackedRange+`) packed
			) e
			ORDER BY e.price_number, e.seq DESC
		) l JOIN prices p ON p.app_id = $1 AND p.number = l.price_number`)
)

// History lists entries of a wallet and returns the position of the next page, or zero at
// the end. A filtered list that has read very many entries returns a partial page.
func (a App) History(ctx context.Context, q HistoryQuery) ([]JournalLine, ledger.Position, error) {
	return pg.ReturnBoth(ctx, a.snapshot, func(ctx context.Context, tx appTx) ([]JournalLine, ledger.Position, error) {
		return tx.history(ctx, q)
	})
}

func (tx appTx) history(ctx context.Context, q HistoryQuery) (list []JournalLine, next ledger.Position, err error) {
	at := q.Position
	if q.Ascending { // perhaps from a number of the caller's
		at.Seq = 0
	}
	w, err := tx.WalletAt(ctx, q.Identity, at)
	if err != nil {
		return nil, next, err
	}
	var creditID *ids.ID
	if q.CreditKey != "" {
		credit, err := tx.Credit(ctx, q.CreditKey)
		if err != nil {
			return nil, next, err
		}
		creditID = &credit.ID
	}
	var kind *string
	if q.Kind != "" {
		kind = (*string)(&q.Kind)
	}
	from, to := q.times()
	return pageOfHistory(ctx, tx, w, q, func(low, high int64, limit int) ([]JournalLine, error) {
		return pg.Collect(ctx, tx, listHistory, func(row pgx.CollectableRow) (JournalLine, error) {
			line, err := readJournalLine(row)
			line.WalletID = w.ID
			return line, err
		}, w.ID, low, high, kind, creditID, from, to, q.Ascending, limit)
	}, func(l JournalLine) int64 { return l.Seq })
}

// EventsOfWallet lists events of a wallet, newest first, of a feature or of all, and
// returns the position of the next page, or zero at the end. An identity without a wallet
// has no events.
func (a App) EventsOfWallet(ctx context.Context, q HistoryQuery, featureKey string) ([]EventFound, ledger.Position, error) {
	return pg.ReturnBoth(ctx, a.snapshot, func(ctx context.Context, tx appTx) (list []EventFound, next ledger.Position, err error) {
		var feature *ids.ID
		if featureKey != "" {
			if feature, err = tx.usedFeature(ctx, featureKey); err != nil {
				return nil, next, err
			}
		}
		w, err := tx.WalletAt(ctx, q.Identity, q.Position)
		if fault.Is(err, fault.WalletNotFound) {
			return nil, next, nil
		}
		if err != nil || featureKey != "" && feature == nil {
			return nil, next, err
		}
		q.Kind = metering.EntryCharge
		from, to := q.times()
		return pageOfHistory(ctx, tx, w, q, func(low, high int64, limit int) ([]EventFound, error) {
			return pg.Collect(ctx, tx, listEventsInRange, readEventFound, w.ID, low, high, feature, from, to, limit)
		}, func(e EventFound) int64 { return e.Seq })
	})
}

// pageOfHistory reads ranges of a wallet's entries until the page is full.
func pageOfHistory[T any](
	ctx context.Context, tx appTx, w ledger.Wallet, q HistoryQuery, read func(low, high int64, limit int) ([]T, error), seq func(T) int64,
) (list []T, next ledger.Position, err error) {
	scan, err := tx.newHistoryScan(ctx, w, q)
	if err != nil {
		return nil, next, err
	}
	for range maxHistoryRanges {
		low, high, ok := scan.next()
		if !ok {
			return list, next, nil
		}
		found, err := read(low, high, q.Limit+1-len(list))
		if err != nil {
			return nil, next, err
		}
		var more bool
		if list, more = pg.Cut(append(list, found...), q.Limit); more {
			return list, w.At(seq(list[len(list)-1])), nil
		}
	}
	return list, w.At(scan.position()), nil
}

// historyScan walks the numbers of a wallet's entries in ranges.
type historyScan struct {
	low, high int64 // exclusive bounds of what is left
	step      int64
	ascending bool
}

// newHistoryScan starts at the query's position, or at its first moment if that is
// further on.
func (tx appTx) newHistoryScan(ctx context.Context, w ledger.Wallet, q HistoryQuery) (scan historyScan, err error) {
	scan = historyScan{low: 0, high: w.LastSeq + 1, step: historyRange, ascending: q.Ascending}
	if !q.filtered() {
		scan.step = int64(q.Limit) + 1
	}
	first, end := tx.maybeFrom, tx.entriesBefore
	if q.Whole {
		first, end = tx.firstFrom, tx.firstFrom
	}
	if q.To != 0 {
		if scan.high, err = end(ctx, w, q.To); err != nil {
			return scan, err
		}
	}
	if q.From != 0 {
		from, err := first(ctx, w, q.From)
		if err != nil {
			return scan, err
		}
		scan.low = from - 1
	}
	if q.Ascending {
		scan.low = max(scan.low, q.Position.Seq)
	} else if q.Position.Seq != 0 {
		scan.high = min(scan.high, q.Position.Seq)
	}
	return scan, nil
}

func (s *historyScan) next() (low, high int64, ok bool) {
	if s.high-s.low <= 1 {
		return 0, 0, false
	}
	low, high = s.low, s.high
	if s.ascending {
		high = min(high, low+1+s.step)
		s.low = high - 1
	} else {
		low = max(low, high-1-s.step)
		s.high = low + 1
	}
	return low, high, true
}

// position is where the next page continues, or 0 at the end.
func (s *historyScan) position() int64 {
	switch {
	case s.high-s.low <= 1:
		return 0
	case s.ascending:
		return s.low
	default:
		return s.high
	}
}

// BalancesAt reads the balances of a wallet as of a moment: before its first entry that is
// later. Credits that the wallet did not have yet are left out.
func (a App) BalancesAt(ctx context.Context, identity string, moment int64) ([]metering.Balance, error) {
	return pg.Return(ctx, a.snapshot, func(ctx context.Context, tx appTx) (balances []metering.Balance, err error) {
		w, err := pg.Find(ctx, tx, ledger.SelectWallet, ledger.ReadWallet, fault.New(fault.WalletNotFound), identity)
		if err != nil {
			return balances, err
		}
		held, err := tx.WithBalances(ctx, []ledger.Wallet{w})
		if err != nil {
			return balances, err
		}
		high, err := tx.firstFrom(ctx, w, moment+1)
		if err != nil {
			return balances, err
		}
		last, err := tx.lastOfCredits(ctx, held[0], high)
		if err != nil {
			return balances, err
		}
		for _, b := range held[0].Balances { // in the order of their keys
			if then, found := last[b.CreditID]; found {
				then.CreditKey = b.CreditKey
				balances = append(balances, then.Balance)
			}
		}
		return balances, nil
	})
}

// lastOfCredits finds the newest entry of each credit below a number. Credits come into a
// wallet by entries that are no charges, so of each credit only the charges since the newest
// of those are of interest.
func (tx appTx) lastOfCredits(ctx context.Context, w metering.Wallet, high int64) (map[ids.ID]balanceAt, error) {
	last, pending, held := map[ids.ID]balanceAt{}, map[ids.ID]bool{}, map[ids.ID]bool{}
	for _, b := range w.Balances {
		held[b.CreditID] = true
	}
	// Every credit with a balance has an entry, and the reversal of covered usage may have one
	// of a credit without a balance.
	err := descend(high, func() bool { return len(last) < len(w.Balances) }, func(low, high int64) error {
		entries, err := pg.Collect(ctx, tx, listLastInJournal, readBalanceAt, w.ID, low, high)
		for _, e := range entries {
			if _, found := last[e.CreditID]; !found && held[e.CreditID] {
				last[e.CreditID], pending[e.CreditID] = e, true
			}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	first := true
	return last, descend(high, func() bool { return len(pending) > 0 }, func(low, high int64) error {
		charges, err := pg.Collect(ctx, tx, listLastCharges, readBalanceAt, w.ID, low, high)
		charged := map[ids.ID]bool{}
		for _, c := range charges {
			if pending[c.CreditID] && c.seq > last[c.CreditID].seq {
				last[c.CreditID], charged[c.CreditID] = c, true
			}
		}
		maps.DeleteFunc(pending, func(credit ids.ID, _ bool) bool { return charged[credit] || last[credit].seq > low })
		if err != nil || !first {
			return err
		}
		first = false
		return tx.dropUnspent(ctx, w, last, pending)
	})
}

// dropUnspent drops the credits that the wallet still holds as their last entry left them:
// charges only take away, so none came later.
func (tx appTx) dropUnspent(ctx context.Context, w metering.Wallet, last map[ids.ID]balanceAt, pending map[ids.ID]bool) error {
	var unspent []ids.ID
	from := int64(math.MaxInt64)
	for _, b := range w.Balances {
		if then := last[b.CreditID]; pending[b.CreditID] && then.Amount == b.Amount && then.Debt == b.Debt {
			unspent, from = append(unspent, b.CreditID), min(from, then.seq)
		}
	}
	if len(unspent) == 0 {
		return nil
	}
	newest, err := pg.Collect(ctx, tx, listNewestInJournal, pgx.RowToStructByPos[struct {
		Credit ids.ID
		Seq    int64
	}], w.ID, from, unspent)
	for _, n := range newest {
		if n.Seq == last[n.Credit].seq {
			delete(pending, n.Credit)
		}
	}
	return err
}

// descend reads growing ranges of numbers, downwards, for as long as more are wanted.
func descend(high int64, wanted func() bool, read func(low, high int64) error) error {
	for step := int64(historyRange); high > 1 && wanted(); step = min(4*step, maxBalanceRange) {
		low := max(0, high-1-step)
		if err := read(low, high); err != nil {
			return err
		}
		high = low + 1
	}
	return nil
}

// balanceAt is what an entry left of its credit.
type balanceAt struct {
	metering.Balance
	seq int64
}

func readBalanceAt(row pgx.CollectableRow) (b balanceAt, err error) {
	err = row.Scan(&b.CreditID, &b.seq, (*pg.Amount)(&b.Amount), (*pg.Amount)(&b.Debt))
	return b, err
}
