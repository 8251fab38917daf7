package monthly

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
)

// Writer writes the files of a month: wallets in the order of their ids, and the entries of
// each in the order of their numbers.
type Writer struct {
	application    string
	month          Month
	entries, lines io.Writer
	entriesSum     hash.Hash
	walletsSum     hash.Hash
	totals         totals
	last           string // wallet
}

// NewWriter writes entries and closings of a month to two files.
func NewWriter(application string, month Month, entries, wallets io.Writer) *Writer {
	w := &Writer{application: application, month: month, entriesSum: sha256.New(), walletsSum: sha256.New(), totals: newTotals()}
	w.entries, w.lines = io.MultiWriter(entries, w.entriesSum), io.MultiWriter(wallets, w.walletsSum)
	return w
}

// Take writes the next entry of a wallet.
func (w *Writer) Take(a *Account, e Entry) error {
	if e.CreatedAt >= w.month.End() {
		return fmt.Errorf("wallet %s, entry %d is later than %s", e.Wallet, e.Seq, w.month)
	}
	line, err := e.Line()
	if err != nil {
		return err
	}
	if err := a.Take(e, line); err != nil {
		return err
	}
	if err := w.totals.add(e); err != nil {
		return err
	}
	_, err = w.entries.Write(append(line, '\n'))
	return err
}

// Close writes the state of a wallet, after its entries.
func (w *Writer) Close(a *Account) error {
	if a.wallet <= w.last {
		return fmt.Errorf("wallet %s follows %s", a.wallet, w.last)
	}
	w.last = a.wallet
	line, err := a.Close().Line()
	if err != nil {
		return err
	}
	w.totals.wallets++
	_, err = w.lines.Write(append(line, '\n'))
	return err
}

// Manifest describes what was written. Before is the manifest of the month before, nil for
// the first.
func (w *Writer) Manifest(before *Manifest) (m Manifest, err error) {
	m = Manifest{
		Format: Format, Application: w.application, Month: w.month, Entries: w.totals.entries, Wallets: w.totals.wallets, Movements: w.totals.movements(),
		EntriesSHA256: hex.EncodeToString(w.entriesSum.Sum(nil)), WalletsSHA256: hex.EncodeToString(w.walletsSum.Sum(nil)),
	}
	if before != nil {
		m.Previous, err = before.Sum()
	}
	return m, err
}

// same reports whether two manifests describe the same files.
func (m Manifest) same(other Manifest) bool {
	a, errA := m.Encode()
	b, errB := other.Encode()
	return errA == nil && errB == nil && bytes.Equal(a, b)
}
