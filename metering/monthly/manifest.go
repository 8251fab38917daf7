package monthly

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"
)

// Format is the number of this format. Files of another one are refused.
const Format = 1

// Manifest says what the files of a month have. A month without one is not complete.
type Manifest struct {
	Format      int        `json:"format"`
	Application string     `json:"applicationId"`
	Month       Month      `json:"month"`
	Entries     int64      `json:"entries"`
	Wallets     int64      `json:"wallets"`
	Movements   []Movement `json:"movements"`
	// EntriesSHA256 and WalletsSHA256 are over the contents before compression, in hex.
	EntriesSHA256 string `json:"entriesSha256"`
	WalletsSHA256 string `json:"walletsSha256"`
	// Previous is the SHA-256 of the manifest of the month before, in hex; empty for the
	// first.
	Previous string `json:"previousManifestSha256"`
}

// Movement is what came into and left the balances of a credit in a month.
type Movement struct {
	CreditKey string `json:"creditKey"`
	In        string `json:"inNanocredits"`
	Out       string `json:"outNanocredits"`
}

// Encode is the manifest as the text of its file.
func (m Manifest) Encode() ([]byte, error) {
	text, err := json.MarshalIndent(m, "", "  ")
	return append(text, '\n'), err
}

// Sum is what the manifest of the next month names as the one before.
func (m Manifest) Sum() (string, error) {
	text, err := m.Encode()
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), err
}

// ParseManifest reads a manifest that Encode wrote. A file that differs in one byte is
// refused.
func ParseManifest(text []byte) (m Manifest, err error) {
	if err := json.Unmarshal(text, &m); err != nil {
		return m, fmt.Errorf("the manifest is not JSON: %w", err)
	}
	if m.Format != Format {
		return m, fmt.Errorf("the manifest has the format %d: this release reads format %d", m.Format, Format)
	}
	if again, err := m.Encode(); err != nil || string(again) != string(text) {
		return m, fmt.Errorf("the manifest was changed")
	}
	return m, nil
}

// totals adds up a month.
type totals struct {
	entries, wallets int64
	in, out          map[string]*big.Int
}

func newTotals() totals { return totals{in: map[string]*big.Int{}, out: map[string]*big.Int{}} }

func (t *totals) add(e Entry) error {
	delta, err := parseDelta(e.Delta)
	if err != nil {
		return err
	}
	side := t.in
	if delta.Sign() < 0 {
		side = t.out
		delta.Neg(delta)
	}
	if t.in[e.CreditKey] == nil {
		t.in[e.CreditKey], t.out[e.CreditKey] = new(big.Int), new(big.Int)
	}
	side[e.CreditKey].Add(side[e.CreditKey], delta)
	t.entries++
	return nil
}

func (t *totals) movements() []Movement {
	list := []Movement{}
	for _, credit := range slices.Sorted(maps.Keys(t.in)) {
		list = append(list, Movement{CreditKey: credit, In: t.in[credit].String(), Out: t.out[credit].String()})
	}
	return list
}
