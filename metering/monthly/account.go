package monthly

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"

	"purser/metering"
)

// Account follows one wallet through its entries.
type Account struct {
	wallet   string
	through  int64
	entries  int64
	chain    [sha256.Size]byte
	balances map[string]holding
}

// holding is an amount and a debt of one credit.
type holding struct{ amount, debt metering.Amount }

// NewAccount is a wallet before its first entry. Its chain begins with the ids of the
// application and the wallet, and with no identity: a rename changes no file.
func NewAccount(application, wallet string) *Account {
	return &Account{wallet: wallet, chain: sha256.Sum256([]byte(application + " " + wallet)), balances: map[string]holding{}}
}

// Open continues a wallet from its closing of the month before.
func Open(c Closing) (*Account, error) {
	a := &Account{wallet: c.Wallet, through: c.Through, balances: map[string]holding{}}
	if n, err := hex.Decode(a.chain[:], []byte(c.Chain)); err != nil || n != len(a.chain) || len(c.Chain) != hex.EncodedLen(n) {
		return nil, fmt.Errorf("wallet %s has the chain %q", c.Wallet, c.Chain)
	}
	for _, b := range c.Balances {
		held, err := parseHolding(b.Amount, b.Debt)
		if err != nil {
			return nil, fmt.Errorf("wallet %s, credit %s: %w", c.Wallet, b.CreditKey, err)
		}
		a.balances[b.CreditKey] = held
	}
	return a, nil
}

// Through is the number of the wallet's last entry so far.
func (a *Account) Through() int64 { return a.through }

// Take adds the next entry, whose line is given, and refuses one that does not follow: by
// its number, or because the balance before and the change do not make the balance after.
func (a *Account) Take(e Entry, line []byte) error {
	if e.Wallet != a.wallet {
		return fmt.Errorf("entry %d of wallet %s is among those of %s", e.Seq, e.Wallet, a.wallet)
	}
	if e.Seq != a.through+1 {
		return fmt.Errorf("wallet %s: entry %d follows entry %d", a.wallet, e.Seq, a.through)
	}
	after, err := parseHolding(e.BalanceAfter, e.DebtAfter)
	if err != nil {
		return fmt.Errorf("wallet %s, entry %d: %w", a.wallet, e.Seq, err)
	}
	delta, err := parseDelta(e.Delta)
	if err != nil {
		return fmt.Errorf("wallet %s, entry %d: %w", a.wallet, e.Seq, err)
	}
	if before := a.balances[e.CreditKey]; delta.Add(delta, before.net()).Cmp(after.net()) != 0 {
		return fmt.Errorf("wallet %s, entry %d: %s nanocredits with %s make %s, but the entry says %s", a.wallet, e.Seq, before.net(), e.Delta, delta, after.net())
	}
	a.balances[e.CreditKey] = after
	a.through, a.entries = e.Seq, a.entries+1
	hash := sha256.New()
	hash.Write(a.chain[:])
	hash.Write(line)
	hash.Sum(a.chain[:0])
	return nil
}

// Close is the state of the wallet now. The account then counts the entries of the next
// month.
func (a *Account) Close() Closing {
	c := Closing{Wallet: a.wallet, Entries: a.entries, Through: a.through, Chain: hex.EncodeToString(a.chain[:]), Balances: []Balance{}}
	for _, credit := range slices.Sorted(maps.Keys(a.balances)) {
		held := a.balances[credit]
		b := Balance{CreditKey: credit, Amount: held.amount.String()}
		if held.debt > 0 {
			b.Debt = held.debt.String()
		}
		c.Balances = append(c.Balances, b)
	}
	a.entries = 0
	return c
}

func (h holding) net() *big.Int {
	n := new(big.Int).SetUint64(uint64(h.amount))
	return n.Sub(n, new(big.Int).SetUint64(uint64(h.debt)))
}

func parseHolding(amount, debt string) (h holding, err error) {
	var fine bool
	if h.amount, fine = metering.ParseAmount(amount); !fine {
		return h, fmt.Errorf("%q is not an amount", amount)
	}
	if debt == "" {
		return h, nil
	}
	if h.debt, fine = metering.ParseAmount(debt); !fine || h.debt == 0 {
		return h, fmt.Errorf("%q is not a debt", debt)
	}
	return h, nil
}

func parseDelta(text string) (*big.Int, error) {
	size, out := strings.CutPrefix(text, "-")
	amount, fine := metering.ParseAmount(size)
	if !fine || out && amount == 0 {
		return nil, fmt.Errorf("%q is not a change of an amount", text)
	}
	return metering.Delta{Amount: amount, Out: out}.Signed(), nil
}
