package verify

import (
	"bytes"
	"fmt"
	"maps"
	"math/big"
	"math/bits"
	"slices"

	"purser/ids"
	"purser/metering"
	"purser/store/internal/pg"
)

// The rules that entries are held to, one by one. A difference names its rule.
const (
	ruleSequence    = "a wallet's entries are numbered without a gap"
	ruleChain       = "each entry leaves the balance before it plus its change"
	ruleDebt        = "nothing is held while in debt"
	ruleOrg         = "every row names the organization of its application"
	ruleSource      = "each entry has the source its kind requires"
	rulePrice       = "each event names a price and a key of its application"
	ruleAmount      = "each amount follows from the price, the quantity and the allowance"
	ruleBlock       = "a blocking allowance is never passed"
	ruleUsed        = "each event starts from what was used before it"
	rulePeriod      = "each deduplication period follows from the event's time"
	ruleLimitPeriod = "each allowance period follows from the event's time or a subscription"
	ruleDuplicate   = "a deduplicated event is free and names the charged one"
	ruleBilled      = "each period is billed by exactly one charged event"
	ruleBalance     = "the stored balance is the one after the last entry"
	ruleDebtors     = "the list of debtors is the list of balances in debt"
	ruleWallet      = "the wallet knows its last entry and whether it was charged"
	ruleBilling     = "a wallet's billing period has both interval and anchor"
	ruleCounter     = "each counter is the sum of what was used in its period"
	ruleSeal        = "sealed entries are as they were sealed"
)

// walletProof follows the entries of one wallet in their order.
type walletProof struct {
	wallet   ids.ID
	identity string
	billing  *metering.BillingPeriod

	// known says that the state before the first entry was proven: it is the empty
	// wallet, or the one of a seal. Otherwise each balance and counter starts from
	// what its first entry claims.
	known     bool
	fromStart bool

	seq       int64
	balances  map[ids.ID]metering.Balance
	counters  map[metering.CounterKey]int64
	touched   map[metering.CounterKey]bool // counters that moved since they were sealed
	billed    int64
	misbilled bool // an event's period is not billed by it
	accepted  bool
	seal      journalSeal
	sealedSeq int64       // of the stored seal; zero for none
	unmarked  bool        // sealed by a release that did not note it in sealed_wallets
	pending   bool        // its seal is of an earlier identity: nothing is sealed before it was renewed
	renewed   journalSeal // of a pending wallet: the chain of its current identity
	stored    journalSeal
	sealedAt  int64
	usage     usageSums // of a full pass; nil for none
	usageUpto int64

	done   bool // all entries were read
	broken bool // a difference was found
	report func(Difference)
	buf    []byte
}

func (p *walletProof) clone() *walletProof {
	c := *p
	c.balances, c.counters, c.touched = maps.Clone(p.balances), maps.Clone(p.counters), maps.Clone(p.touched)
	c.usage = maps.Clone(p.usage)
	c.buf = nil
	return &c
}

func (p *walletProof) differs(rule, format string, args ...any) {
	p.broken = true
	p.report(Difference{Check: rule, WalletID: p.wallet, Identity: p.identity, Detail: fmt.Sprintf(format, args...)})
}

// entryName is how an entry is called in a difference.
func entryName(e *verifiedEntry) string {
	if e.event {
		return fmt.Sprintf("entry %d (usage event %q, %s)", e.seq, pg.EventIDOf([]byte(e.eventID)), e.id.Format(ids.Transaction))
	}
	return fmt.Sprintf("entry %d (%s, %s)", e.seq, e.kind, e.id.Format(e.kind.IDPrefix()))
}

// take proves the next entry.
func (p *walletProof) take(e *verifiedEntry, catalog *verifyCatalog, org ids.ID) {
	if e.seq != p.seq+1 {
		p.differs(ruleSequence, "%s follows entry %d: expected entry %d", entryName(e), p.seq, p.seq+1)
	}
	p.seq = e.seq
	if e.org != org {
		p.differs(ruleOrg, "%s names the organization %s, expected %s", entryName(e), e.org.Format(ids.Organization), org.Format(ids.Organization))
	}
	if e.event {
		p.takeEvent(e, catalog)
	} else {
		p.takeJournal(e, catalog)
	}
	p.takeBalance(e)
	if p.known {
		p.seal, p.buf = p.seal.next(p.buf, e)
		if p.fromStart && p.pending {
			p.renewed, p.buf = p.renewed.next(p.buf, e)
		}
		if p.fromStart && p.seq == p.sealedSeq && p.seal != p.stored && !(p.pending && p.renewed == p.stored) {
			p.differs(ruleSeal, "entries 1 to %d, or whose wallet it is, were changed after they were verified and sealed", p.seq)
		}
	}
}

func (p *walletProof) takeBalance(e *verifiedEntry) {
	if e.balanceAfter > 0 && e.debtAfter > 0 {
		p.differs(ruleDebt, "%s leaves a balance of %s beside a debt of %s", entryName(e), e.balanceAfter.Credits(), e.debtAfter.Credits())
	}
	before, met := p.balances[e.credit]
	if (met || p.known) && !leaves(before, e) {
		p.differs(ruleChain, "%s: a balance of %s with %s makes %s, but the entry says %s", entryName(e),
			balanceText(before), deltaText(e.delta), netText(new(big.Int).Add(netOf(before), signedOf(e.delta))), balanceText(balanceAfter(e)))
	}
	p.balances[e.credit] = balanceAfter(e)
}

func balanceAfter(e *verifiedEntry) metering.Balance {
	return metering.Balance{CreditID: e.credit, Amount: e.balanceAfter, Debt: e.debtAfter}
}

// leaves reports whether the balance before an entry and its change make what the
// entry says.
func leaves(before metering.Balance, e *verifiedEntry) bool {
	if before.Debt == 0 && e.debtAfter == 0 { // almost always
		if e.delta.Out {
			return before.Amount >= e.delta.Amount && before.Amount-e.delta.Amount == e.balanceAfter
		}
		sum, carry := bits.Add64(uint64(before.Amount), uint64(e.delta.Amount), 0)
		return carry == 0 && sum == uint64(e.balanceAfter)
	}
	return new(big.Int).Add(netOf(before), signedOf(e.delta)).Cmp(netOf(balanceAfter(e))) == 0
}

func netOf(b metering.Balance) *big.Int {
	n := new(big.Int).SetUint64(uint64(b.Amount))
	return n.Sub(n, new(big.Int).SetUint64(uint64(b.Debt)))
}

func signedOf(d metering.Delta) *big.Int {
	n := new(big.Int).SetUint64(uint64(d.Amount))
	if d.Out {
		n.Neg(n)
	}
	return n
}

func netText(n *big.Int) string {
	size := metering.Amount(new(big.Int).Abs(n).Uint64()).Credits()
	if n.Sign() < 0 {
		return "-" + size
	}
	return size
}

func balanceText(b metering.Balance) string { return netText(netOf(b)) }

func deltaText(d metering.Delta) string {
	if d.Out {
		return "-" + d.Amount.Credits()
	}
	return "+" + d.Amount.Credits()
}

// takeJournal holds an entry to its kind. That the payment or the adjustment itself
// is there is found out for a batch at once.
func (p *walletProof) takeJournal(e *verifiedEntry, catalog *verifyCatalog) {
	source := e.sourceKind.value
	var fits bool
	switch e.kind {
	case metering.EntryDeposit:
		fits = !e.sourceKind.set && !e.delta.Out
	case metering.EntryAdjustment:
		fits = !e.sourceKind.set
	case metering.EntryReversal:
		fits = !e.sourceKind.set && !e.delta.Out
		p.takeReversal(e, catalog)
	case metering.EntryTransfer:
		fits = !e.sourceKind.set && e.delta.Amount > 0
	case metering.EntryGrant:
		fits = (source == "invoice" || source == "free_period") && !e.delta.Out
	case metering.EntryTopUp:
		fits = source == "session" && !e.delta.Out
	case metering.EntryRefund, metering.EntryDispute:
		fits = source == "invoice" || source == "session"
	}
	if !fits {
		from := "no payment"
		if e.sourceKind.set {
			from = source + " " + e.sourceID.value
		}
		p.differs(ruleSource, "%s of %s comes from %s, which a %s cannot", entryName(e), deltaText(e.delta), from, e.kind)
	}
}

func (p *walletProof) takeEvent(e *verifiedEntry, catalog *verifyCatalog) {
	price, known := catalog.prices[e.priceNumber]
	if !known {
		p.differs(rulePrice, "%s names price number %d, which does not exist", entryName(e), e.priceNumber)
		return
	}
	e.credit = price.credit
	p.takeUsage(e, price)
	if !catalog.keys[e.keyID] {
		p.differs(rulePrice, "%s came with the key %s, which the application does not have", entryName(e), e.keyID.Format(ids.APIKey))
	}
	p.takeAllowance(e, price)
	p.takePeriod(e, catalog.features[price.feature])
	p.takeAmount(e, price)
	if e.accepted() {
		p.accepted = true
		catalog.used[price.feature] = true
		if e.periodStart.set {
			p.billed++
		}
	}
}

func (p *walletProof) takeAllowance(e *verifiedEntry, price verifyPrice) {
	if !e.limit.set {
		return
	}
	if !e.accepted() {
		p.differs(ruleDuplicate, "%s was deduplicated and still counts against a limit", entryName(e))
		return
	}
	key := metering.CounterKey{FeatureID: price.feature, Period: e.allowancePeriod()}
	before, met := p.counters[key]
	if (met || p.known) && before != e.used.value {
		p.differs(ruleUsed, "%s starts from %d used, but the events before it used %d", entryName(e), e.used.value, before)
	}
	p.counters[key] = e.used.value + e.quantity
	if met || p.known {
		p.counters[key] = before + e.quantity
	}
	p.touched[key] = true
	if e.overage.value == string(metering.OverageBlock) && e.quantity > max(0, e.limit.value-e.used.value) {
		p.differs(ruleBlock, "%s used %d of a limit of %d with %d used before", entryName(e), e.quantity, e.limit.value, e.used.value)
	}
}

// takePeriod holds the event to the deduplication of its feature, which is fixed
// from the first accepted event on. A period that comes from a subscription is
// explained later.
func (p *walletProof) takePeriod(e *verifiedEntry, feature verifyFeature) {
	if e.periodStart.set != e.periodEnd.set || e.periodStart.set != (feature.deduplication != metering.DeduplicateNone) {
		p.differs(rulePeriod, "%s has the period %s, but %s deduplicates by %s", entryName(e), periodText(e), feature.key, feature.deduplication)
		return
	}
	if !e.original.IsZero() && !e.periodStart.set {
		p.differs(ruleDuplicate, "%s was deduplicated, but %s does not deduplicate", entryName(e), feature.key)
	}
	if !e.periodStart.set {
		return
	}
	if want, calendar := p.periodOf(feature.deduplication, e.occurred()); calendar && want != e.period() {
		p.differs(rulePeriod, "%s happened at %d and has the period %s, expected %d to %d", entryName(e), e.occurred(), periodText(e), want.Start, want.End)
	}
}

func (p *walletProof) periodOf(d metering.Deduplication, at int64) (period metering.Period, calendar bool) {
	switch {
	case d == metering.DeduplicateDay:
		return metering.DayOf(at), true
	case d == metering.DeduplicateWeek:
		return metering.WeekOf(at), true
	case d == metering.DeduplicateMonth:
		return metering.MonthOf(at), true
	case p.billing != nil:
		return p.billing.Containing(at), true
	}
	return period, false
}

func periodText(e *verifiedEntry) string {
	if !e.periodStart.set {
		return "none"
	}
	return fmt.Sprintf("%d to %d", e.periodStart.value, e.periodEnd.value)
}

func (p *walletProof) takeAmount(e *verifiedEntry, price verifyPrice) {
	if e.quantity <= 0 {
		p.differs(ruleAmount, "%s has the quantity %d", entryName(e), e.quantity)
		return
	}
	if e.quoted.set && price.mode != metering.Callback {
		p.differs(ruleAmount, "%s was quoted %s, but its feature has a fixed price", entryName(e), e.quoted.value.Credits())
	}
	want := e.amount
	switch {
	case !e.original.IsZero():
		want = 0
	case price.mode == metering.Callback && !e.quoted.set: // the quote is the amount
	case price.mode == metering.Callback:
		want = ceilOf(uint64(e.quoted.value), e.billable(), 1, e.quantity)
	default:
		basisPoints := metering.ListPrice
		if e.basisPoints.set {
			basisPoints = e.basisPoints.value
		}
		want = ceilOf(uint64(price.cost), e.billable(), basisPoints, price.quantityPerUnit, metering.ListPrice)
	}
	if e.amount != want {
		p.differs(ruleAmount, "%s was charged %s, its price and quantity make %s", entryName(e), e.amount.Credits(), want.Credits())
	}
}

// billable is the part of the quantity that no allowance covered.
func (e *verifiedEntry) billable() int64 {
	if !e.limit.set {
		return e.quantity
	}
	return e.quantity - min(e.quantity, max(0, e.limit.value-e.used.value))
}

// ceilOf is the cost times the two factors over the divisors, rounded up. It is
// written apart from metering.Price on purpose, and by plain multiplication.
func ceilOf(cost uint64, quantity, factor int64, divisors ...int64) metering.Amount {
	high, product := bits.Mul64(cost, uint64(quantity))
	if high == 0 {
		high, product = bits.Mul64(product, uint64(factor))
	}
	divisor := uint64(1)
	for _, d := range divisors {
		if d <= 0 { // of a price that was tampered with
			return 0
		}
		var over uint64
		if over, divisor = bits.Mul64(divisor, uint64(d)); over != 0 {
			high = 1
		}
	}
	if high == 0 {
		quotient := product / divisor
		if product%divisor != 0 {
			quotient++
		}
		return metering.Amount(quotient)
	}
	n := new(big.Int).SetUint64(cost)
	n.Mul(n, big.NewInt(quantity)).Mul(n, big.NewInt(factor))
	d := big.NewInt(1)
	for _, by := range divisors {
		d.Mul(d, big.NewInt(by))
	}
	n.Add(n, d).Sub(n, big.NewInt(1)).Quo(n, d)
	return metering.Amount(n.Uint64())
}

// balanceArrays are the balances after the last entry, in the order of credits.
func (p *walletProof) balanceArrays() (credits []ids.ID, amounts, debts []pg.Amount) {
	credits = slices.SortedFunc(maps.Keys(p.balances), func(a, b ids.ID) int { return bytes.Compare(a[:], b[:]) })
	amounts, debts = make([]pg.Amount, len(credits)), make([]pg.Amount, len(credits))
	for i, credit := range credits {
		amounts[i], debts[i] = pg.Amount(p.balances[credit].Amount), pg.Amount(p.balances[credit].Debt)
	}
	return credits, amounts, debts
}
