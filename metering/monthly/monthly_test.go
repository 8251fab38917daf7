package monthly

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"math/big"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"purser/metering"
)

const application = "app_1"

// month is one month's files in memory.
type month struct {
	Manifest
	entries, wallets []byte
}

// writeMonths writes entries of wallets, each in the order of its numbers, as an export does.
func writeMonths(t *rapid.T, wallets map[string][]Entry, months []Month) (list []month) {
	names := slices.Sorted(func(yield func(string) bool) {
		for name := range wallets {
			if !yield(name) {
				return
			}
		}
	})
	for i, m := range months {
		var entries, lines bytes.Buffer
		var before *Manifest
		var opening io.Reader
		if i > 0 {
			before, opening = &list[i-1].Manifest, bytes.NewReader(list[i-1].wallets)
		}
		w, openings := NewWriter(application, m, &entries, &lines), ReadClosings(opening)
		for _, name := range names {
			account, err := openings.Account(application, name)
			must(t, err)
			for _, e := range wallets[name][account.Through():] {
				if e.CreatedAt >= m.End() {
					break
				}
				must(t, w.Take(account, e))
			}
			must(t, w.Close(account))
		}
		must(t, openings.End())
		manifest, err := w.Manifest(before)
		must(t, err)
		list = append(list, month{manifest, entries.Bytes(), lines.Bytes()})
	}
	return list
}

func must(t *rapid.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func check(list []month) error {
	for i, m := range list {
		var before *Manifest
		var opening io.Reader
		if i > 0 {
			before, opening = &list[i-1].Manifest, bytes.NewReader(list[i-1].wallets)
		}
		if err := Check(m.Manifest, Files{bytes.NewReader(m.entries), bytes.NewReader(m.wallets)}, before, opening); err != nil {
			return err
		}
	}
	return nil
}

const firstMonth Month = "2026-01"

// anyBooks draws wallets whose entries add up. Their times go up and sometimes back.
func anyBooks(t *rapid.T) map[string][]Entry {
	wallets := map[string][]Entry{}
	for n := range rapid.IntRange(1, 4).Draw(t, "wallets") {
		name, at := fmt.Sprintf("wal_%d", n), firstMonth.start().UnixMilli()
		held := map[string]*big.Int{"gold": new(big.Int), "silver": new(big.Int)}
		list := []Entry{}
		for seq := range rapid.IntRange(0, 12).Draw(t, "entries") {
			at += rapid.Int64Range(-60_000, 20*24*3600*1000).Draw(t, "later")
			credit := rapid.SampledFrom([]string{"gold", "silver"}).Draw(t, "credit")
			delta := metering.Delta{Amount: metering.Amount(rapid.Uint64Range(0, 1_000_000).Draw(t, "amount")), Out: rapid.Bool().Draw(t, "out")}
			change, _ := parseDelta(delta.String())
			after := held[credit].Add(held[credit], change)
			e := Entry{
				Wallet: name, Seq: int64(seq + 1), ID: fmt.Sprintf("txn_%d_%d", n, seq), Kind: metering.EntryAdjustment, CreditKey: credit,
				Delta: delta.String(), BalanceAfter: after.String(), CreatedAt: at,
			}
			if after.Sign() < 0 {
				e.BalanceAfter, e.DebtAfter = "0", new(big.Int).Neg(after).String()
			}
			if delta.Out {
				e.Kind, e.Event = metering.EntryCharge, &Event{ID: rapid.StringN(1, 8, -1).Draw(t, "event"), Feature: "chat", Cost: "7", Quantity: 1}
			}
			list = append(list, e)
		}
		wallets[name] = list
	}
	return wallets
}

func aYear() (list []Month) {
	for m := firstMonth; len(list) < 12; m = m.Next() {
		list = append(list, m)
	}
	return list
}

func TestEveryEntryIsInExactlyOneMonth(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		books := anyBooks(t)
		list := writeMonths(t, books, aYear())
		must(t, check(list))
		found := map[string]int{}
		for _, m := range list {
			for line := range strings.Lines(string(m.entries)) {
				found[strings.TrimSpace(line)]++
			}
		}
		for name, entries := range books {
			for _, e := range entries {
				line, err := e.Line()
				must(t, err)
				if found[string(line)] != 1 && e.CreatedAt < list[11].Month.End() && !waits(entries, e, list[11].Month) {
					t.Fatalf("entry %d of %s is in %d months", e.Seq, name, found[string(line)])
				}
				delete(found, string(line))
			}
		}
		if len(found) > 0 {
			t.Fatalf("the files have %d entries that were never made", len(found))
		}
	})
}

// waits reports that an earlier entry of the wallet is later than the month, so that the
// entry is in the file of that one.
func waits(entries []Entry, e Entry, last Month) bool {
	return slices.ContainsFunc(entries, func(earlier Entry) bool { return earlier.Seq < e.Seq && earlier.CreatedAt >= last.End() })
}

func TestTheSameEntriesMakeTheSameFiles(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		books := anyBooks(t)
		first, second := writeMonths(t, books, aYear()), writeMonths(t, books, aYear())
		for i := range first {
			if !first[i].same(second[i].Manifest) || !bytes.Equal(first[i].entries, second[i].entries) || !bytes.Equal(first[i].wallets, second[i].wallets) {
				t.Fatalf("%s differs", first[i].Month)
			}
		}
	})
}

// Whatever one byte or line of the files is changed, the check finds it; also when the sums
// of the manifests are computed again.
func TestAChangedFileIsFound(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		list := writeMonths(t, anyBooks(t), aYear()[:3])
		m := &list[rapid.IntRange(0, 2).Draw(t, "month")]
		content := &m.entries
		if rapid.Bool().Draw(t, "wallets") || len(m.entries) == 0 {
			content = &m.wallets
		}
		*content = bytes.Clone(*content)
		at := rapid.IntRange(0, len(*content)-1).Draw(t, "at")
		change := rapid.SampledFrom([]string{"byte", "line", "line break", "end"}).Draw(t, "change")
		switch change {
		case "byte":
			(*content)[at] ^= byte(rapid.IntRange(1, 255).Draw(t, "bits"))
		case "line break":
			*content = bytes.Replace(*content, []byte("\n"), []byte("\r\n"), 1)
		case "end":
			*content = bytes.TrimSuffix(*content, []byte("\n"))
		default:
			lines := bytes.SplitAfter(*content, []byte("\n"))
			gone := rapid.IntRange(0, len(lines)-2).Draw(t, "gone")
			*content = bytes.Join(slices.Delete(lines, gone, gone+1), nil)
		}
		if check(list) == nil {
			t.Fatalf("a changed %s of %s is not found", change, m.Month)
		}
	})
}

func TestARewrittenMonthIsFoundByTheNext(t *testing.T) {
	t.Parallel()
	deposit := func(seq int64, amount, after string, m Month) Entry {
		return Entry{Wallet: "wal_1", Seq: seq, ID: "dep", Kind: metering.EntryDeposit, CreditKey: "gold", Delta: amount, BalanceAfter: after, CreatedAt: m.start().UnixMilli()}
	}
	honest := map[string][]Entry{"wal_1": {deposit(1, "5", "5", "2026-01"), deposit(2, "5", "10", "2026-02")}}
	forged := map[string][]Entry{"wal_1": {deposit(1, "9", "9", "2026-01"), deposit(2, "5", "14", "2026-02")}}
	rapid.Check(t, func(t *rapid.T) {
		list, other := writeMonths(t, honest, aYear()[:2]), writeMonths(t, forged, aYear()[:2])
		must(t, check(list))
		if check([]month{other[0], list[1]}) == nil {
			t.Fatal("a rewritten month passes beside the next one")
		}
		if check(list[1:]) == nil {
			t.Fatal("the first month may be missing")
		}
	})
}

// So the digest of the last manifest is one of all months.
func TestAManifestNamesTheOneBefore(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		before := ""
		for _, m := range writeMonths(t, anyBooks(t), aYear()[:3]) {
			if m.Previous != before {
				t.Fatalf("%s names %q before it, expected %q", m.Month, m.Previous, before)
			}
			text, err := m.Encode()
			must(t, err)
			before = fmt.Sprintf("%x", sha256.Sum256(text))
		}
	})
}

func TestAnEntryThatDoesNotFollowIsRefused(t *testing.T) {
	t.Parallel()
	good := Entry{Wallet: "wal_1", Seq: 1, Kind: metering.EntryDeposit, CreditKey: "gold", Delta: "5", BalanceAfter: "5"}
	for name, change := range map[string]func(*Entry){
		"of another wallet":         func(e *Entry) { e.Wallet = "wal_2" },
		"with a gap before it":      func(e *Entry) { e.Seq = 2 },
		"that is there already":     func(e *Entry) { e.Seq = 0 },
		"whose balance is too high": func(e *Entry) { e.BalanceAfter = "6" },
		"that forgets a debt":       func(e *Entry) { e.Delta = "-5" },
		"with a balance of 20 digits": func(e *Entry) {
			e.BalanceAfter = strings.Repeat("9", 20)
		},
		"with a delta of nothing out": func(e *Entry) { e.Delta, e.BalanceAfter = "-0", "0" },
		"with a debt of nothing":      func(e *Entry) { e.DebtAfter = "0" },
	} {
		e := good
		change(&e)
		if err := NewAccount(application, "wal_1").Take(e, nil); err == nil {
			t.Errorf("an entry %s is taken", name)
		}
	}
	if err := NewAccount(application, "wal_1").Take(good, nil); err != nil {
		t.Error(err)
	}
}

// An allowance or a price of zero charges nothing of a credit that the wallet does not hold,
// so it may have entries of every credit that an application can have.
func TestAWalletMayHaveUsedEveryCredit(t *testing.T) {
	t.Parallel()
	const credits = 10_000
	var entries, wallets bytes.Buffer
	w, account := NewWriter(application, "2026-01", &entries, &wallets), NewAccount(application, "wal_1")
	for i := range credits {
		key := fmt.Sprintf("%0*d", metering.MaxKeyLength, i)
		if err := w.Take(account, Entry{Wallet: "wal_1", Seq: int64(i) + 1, Kind: metering.EntryCharge, CreditKey: key, Delta: "0", BalanceAfter: "0"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(account); err != nil {
		t.Fatal(err)
	}
	m, err := w.Manifest(nil)
	if err == nil {
		err = Check(m, Files{Entries: &entries, Wallets: bytes.NewReader(wallets.Bytes())}, nil, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ReadClosings(&wallets).Account(application, "wal_1"); err != nil {
		t.Error(err)
	}
}

func TestALineThatIsTooLongIsRefused(t *testing.T) {
	t.Parallel()
	for length, fits := range map[int]bool{MaxLine - 1: true, MaxLine: false} {
		list := newLines[string](strings.NewReader(`"` + strings.Repeat("x", length-2) + `"`))
		if _, _, err := list.next(); (err == nil) != fits {
			t.Errorf("a line of %d bytes: %v", length, err)
		}
	}
}

func TestDueMonthsAreOverAndFollowTheLast(t *testing.T) {
	t.Parallel()
	at := func(m Month) int64 { return m.start().UnixMilli() }
	for name, c := range map[string]struct {
		last       Month
		first, now int64
		before     Month
		want       string
	}{
		"all from the first entry on":              {"", at("2026-01") + 5, at("2026-04") + commitDelay, "9999-12", "[2026-01 2026-02 2026-03]"},
		"the current month is left out":            {"", at("2026-01"), at("2026-02") - 1, "9999-12", "[]"},
		"a month gets its last entries":            {"", at("2026-01"), at("2026-04") + commitDelay - 1, "9999-12", "[2026-01 2026-02]"},
		"after the last one":                       {"2026-02", at("2026-01"), at("2026-05") - 1, "9999-12", "[2026-03]"},
		"before a month":                           {"", at("2025-11"), at("2026-04"), "2026-01", "[2025-11 2025-12]"},
		"none when the last one is the last due":   {"2026-03", at("2026-01"), at("2026-04"), "9999-12", "[]"},
		"none when the clock is behind the folder": {"2026-08", at("2026-01"), at("2026-04"), "9999-12", "[]"},
	} {
		if got := fmt.Sprint(Due(c.last, c.first, c.now, c.before)); got != c.want {
			t.Errorf("%s: %s, expected %s", name, got, c.want)
		}
	}
	for text, fine := range map[string]bool{"2026-10": true, "2026-13": false, "2026-1": false, "26-10": false, "../2026-10": false, "": false, "1969-12": false} {
		if _, err := ParseMonth(text); (err == nil) != fine {
			t.Errorf("the month %q: %v", text, err)
		}
	}
}
