package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"purser/ids"
	"purser/keys"
	"purser/metering"
	"purser/metering/monthly"
	"purser/store"
	"purser/store/embedded/flock"
	"purser/store/reports"
	"purser/store/verify"
	"purser/tenancy"
)

// exportedNode is a node whose first application has entries of January, February and March
// 2020: more than one read of them in January, and none of bob's in February.
type exportedNode struct {
	node  verifiedNode
	app   store.App
	key   keys.APIKey
	usage *store.Engine
	now   time.Time
	out   bytes.Buffer
}

func monthDay(month time.Month, day int) time.Time {
	return time.Date(2020, month, day, 12, 0, 0, 0, time.UTC)
}

func newExportedNode(t *testing.T) *exportedNode {
	t.Helper()
	n := &exportedNode{node: newVerifiedNode(t), now: monthDay(1, 1)}
	n.app = n.node.store.App(n.node.first)
	noFailure(t, n.app.CreateCredit(t.Context(), metering.Credit{ID: ids.New(), Key: "tokens", Name: "Tokens", Unit: "token", Revision: 1, CreatedAt: 1}))
	_, err := n.app.CreateFeature(t.Context(), metering.Feature{
		ID: ids.New(), Key: "chat", Name: "Chat", Unit: "message", CreditKey: "tokens", Cost: 7, QuantityPerUnit: 1,
		PricingMode: metering.Fixed, Deduplication: metering.DeduplicateNone, Revision: 1, CreatedAt: 1,
	})
	noFailure(t, err)
	spec := keys.Spec{ID: ids.New(), App: tenancy.Application{ID: n.node.first.AppID, OrgID: n.node.first.OrgID}, Name: "Server", Preset: keys.Setup}
	n.key, _, err = keys.New(spec, tenancy.AllPermissions(), 1, rand.Reader)
	noFailure(t, err)
	noFailure(t, n.app.CreateKey(t.Context(), n.key))
	n.usage, err = n.node.store.OpenEngine(t.Context(), store.EngineOptions{Now: func() int64 { return n.now.UnixMilli() }})
	noFailure(t, err)
	t.Cleanup(n.usage.Close)

	n.deposit(t, "ann", 100_000)
	n.deposit(t, "bob", 50)
	var january []store.Usage
	for i := range reports.MonthlyRange + 50 {
		january = append(january, n.chat("ann", fmt.Sprint("january ", i)))
	}
	outcomes, err := n.usage.TrackBatch(january)
	noFailure(t, err)
	for _, o := range outcomes {
		noFailure(t, o.Err)
		noFailure(t, o.Decision.Err())
	}
	n.now = monthDay(2, 10)
	n.use(t, "ann", ids.New().String())
	n.deposit(t, "ann", 3)
	n.now = monthDay(3, 1)
	n.use(t, "ann", "<march>")
	n.deposit(t, "bob", 5)
	return n
}

func noFailure(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (n *exportedNode) deposit(t *testing.T, identity string, amount metering.Amount) {
	t.Helper()
	key := ids.New().String()
	_, _, err := n.app.Deposit(t.Context(), store.Deposit{
		ID: ids.New(), Identity: identity, CreditKey: "tokens", Amount: amount, IdempotencyKey: &key, CreatedAt: n.now.UnixMilli(),
	})
	noFailure(t, err)
}

func (n *exportedNode) use(t *testing.T, identity, event string) {
	t.Helper()
	decision, err := n.usage.Track(n.chat(identity, event))
	noFailure(t, err)
	noFailure(t, decision.Err())
}

func (n *exportedNode) chat(identity, event string) store.Usage {
	return store.Usage{
		Scope: n.node.first, KeyID: n.key.ID, Identity: identity, FeatureKey: "chat",
		Usage: metering.Usage{TransactionID: ids.New(), EventID: event, EntityID: "room 1", Quantity: 1},
	}
}

func (n *exportedNode) verify(t *testing.T) {
	t.Helper()
	v, err := n.node.store.Verification(n.node.first).Verify(t.Context(), verify.Options{New: true, Record: true, Now: 1})
	noFailure(t, err)
	if len(v.Differences)+len(v.Unfinished) > 0 {
		t.Fatalf("%+v", v)
	}
}

// export writes the months before one to a folder.
func (n *exportedNode) export(ctx context.Context, folder string, before monthly.Month) error {
	n.out.Reset()
	return exporter{db: n.node.store, folder: folder, before: before, out: &n.out}.run(ctx, ids.ID{})
}

// files are the contents of all files of the application in a folder, unpacked.
func (n *exportedNode) files(t *testing.T, folder string) map[string]string {
	t.Helper()
	found := map[string]string{}
	paths, err := filepath.Glob(filepath.Join(folder, n.node.first.AppID.Format(ids.Application), "*"))
	noFailure(t, err)
	for _, path := range paths {
		found[filepath.Base(path)] = string(readPacked(t, path))
	}
	return found
}

func readPacked(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	noFailure(t, err)
	if !strings.HasSuffix(path, ".gz") {
		return text
	}
	unpacked, err := gzip.NewReader(bytes.NewReader(text))
	noFailure(t, err)
	text, err = io.ReadAll(unpacked)
	noFailure(t, err)
	return text
}

func writePacked(t *testing.T, path, text string) {
	t.Helper()
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err := io.WriteString(w, text)
	noFailure(t, err)
	noFailure(t, w.Close())
	noFailure(t, os.WriteFile(path, packed.Bytes(), 0o600))
}

func sameFiles(t *testing.T, when string, got, want map[string]string) {
	t.Helper()
	for name, text := range want {
		if got[name] != text {
			t.Errorf("%s: %s differs", when, name)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%s: there are %d files, expected %d", when, len(got), len(want))
	}
}

func TestMonthlyFilesHaveEveryEntryOnce(t *testing.T) {
	t.Parallel()
	n := newExportedNode(t)
	folder := filepath.Join(t.TempDir(), "months")

	t.Run("entries that are not sealed are refused, and leave no month", func(t *testing.T) {
		err := n.export(t.Context(), folder, "2020-03")
		if err == nil || !strings.Contains(err.Error(), "purser verify --new") {
			t.Errorf("got %v", err)
		}
		if err := checkMonths(folder, io.Discard); err == nil {
			t.Error("there are months")
		}
	})
	n.verify(t)
	noFailure(t, n.export(t.Context(), folder, "2020-03"))
	first := n.files(t, folder)
	delete(first, "2020-01.entries.jsonl.gz.partial") // of the attempt above
	noFailure(t, checkMonths(folder, &n.out))

	t.Run("each entry is as the database has it", func(t *testing.T) {
		lines := strings.SplitAfter(first["2020-01.entries.jsonl.gz"]+first["2020-02.entries.jsonl.gz"], "\n")
		seen := map[string]monthly.Entry{}
		for _, line := range lines[:len(lines)-1] {
			var e monthly.Entry
			noFailure(t, json.Unmarshal([]byte(line), &e))
			seen[e.ID] = e
		}
		if len(seen) != len(lines)-1 {
			t.Errorf("%d lines have %d entries", len(lines)-1, len(seen))
		}
		read := n.node.store.Reports(n.node.first)
		for _, identity := range []string{"ann", "bob"} {
			n.compare(t, read, identity, seen)
		}
		if len(seen) > 0 {
			t.Errorf("%d entries are not those of the months", len(seen))
		}
	})
	t.Run("closings are the balances at the end of the month", func(t *testing.T) {
		for file, want := range map[string]string{"2020-01.wallets.jsonl.gz": "98250", "2020-02.wallets.jsonl.gz": "98246"} {
			if !strings.Contains(first[file], `"amountNanocredits":"`+want+`"`) || strings.Count(first[file], "\n") != 2 {
				t.Errorf("%s has %s", file, first[file])
			}
		}
	})
	t.Run("a second run writes nothing", func(t *testing.T) {
		noFailure(t, n.export(t.Context(), folder, "2020-03"))
		if !strings.Contains(n.out.String(), "Wrote 0 months") {
			t.Errorf("printed %s", n.out.String())
		}
	})
	t.Run("an interrupted month is written again", func(t *testing.T) {
		path := filepath.Join(folder, n.node.first.AppID.Format(ids.Application))
		noFailure(t, os.Remove(filepath.Join(path, "2020-02.json")))
		noFailure(t, os.WriteFile(filepath.Join(path, "2020-02.entries.jsonl.gz"), []byte("half"), 0o600))
		noFailure(t, os.WriteFile(filepath.Join(path, "2020-02.wallets.jsonl.gz.partial"), []byte("half"), 0o600))
		noFailure(t, n.export(t.Context(), folder, "2020-03"))
		noFailure(t, checkMonths(folder, io.Discard))
		sameFiles(t, "after an interruption", n.files(t, folder), first)
	})
	t.Run("a customer who is erased changes no file", func(t *testing.T) {
		_, _, err := n.app.Erase(t.Context(), store.Erasure{Identity: "ann", Reason: "Asked for it", IdempotencyKey: "e", CreatedAt: n.now.UnixMilli()})
		noFailure(t, err)
		again := filepath.Join(t.TempDir(), "again")
		noFailure(t, n.export(t.Context(), again, "2020-03"))
		sameFiles(t, "after an erasure", n.files(t, again), first)
		if strings.Contains(fmt.Sprint(first), `"ann"`) { // ids may have these letters
			t.Error("the files name the customer")
		}
	})
	t.Run("a customer who came later changes no file", func(t *testing.T) {
		n.now = monthDay(4, 2)
		n.deposit(t, "carl", 1)
		later := filepath.Join(t.TempDir(), "later")
		noFailure(t, n.export(t.Context(), later, "2020-03"))
		sameFiles(t, "after a first deposit", n.files(t, later), first)
	})
	t.Run("the next month continues", func(t *testing.T) {
		noFailure(t, n.export(t.Context(), folder, "2020-04"))
		noFailure(t, checkMonths(folder, &n.out))
		if march := n.files(t, folder)["2020-03.entries.jsonl.gz"]; strings.Count(march, "\n") != 2 || !strings.Contains(march, "<march>") && !strings.Contains(march, `\u003cmarch\u003e`) {
			t.Errorf("March has %s", march)
		}
	})
}

// compare takes the entries of a wallet before March from those that were seen in files.
func (n *exportedNode) compare(t *testing.T, read reports.App, identity string, seen map[string]monthly.Entry) {
	t.Helper()
	head, err := read.ExportHead(t.Context(), identity)
	noFailure(t, err)
	for after := int64(0); after < head.LastSeq; {
		lines, _, err := read.ExportEntries(t.Context(), head.Wallet.ID, after)
		noFailure(t, err)
		for _, l := range lines {
			after = l.Seq
			if l.CreatedAt >= monthly.Month("2020-02").End() {
				continue
			}
			id := l.ID.Format(l.Kind.IDPrefix())
			e := seen[id]
			delete(seen, id)
			if e.Wallet != head.Wallet.ID.Format(ids.Wallet) || e.Seq != l.Seq || e.Kind != l.Kind || e.Delta != l.Delta.String() ||
				e.BalanceAfter != l.BalanceAfter.String() || e.CreatedAt != l.CreatedAt || e.CreditKey != l.CreditKey {
				t.Fatalf("entry %d of %s is %+v in the file, and %+v in the database", l.Seq, identity, e, l)
			}
			if l.Kind == metering.EntryCharge && (e.Event == nil || e.Event.ID != l.EventID || e.Event.EntityID != "room 1" || e.Event.Cost != "7" || e.Event.KeyID != n.key.ID.Format(ids.APIKey)) {
				t.Fatalf("the event of entry %d is %+v", l.Seq, e.Event)
			}
		}
	}
}

// Entries of a wallet with a difference are never sealed.
func TestAnApplicationThatIsNotSealedKeepsNoOtherFromItsExport(t *testing.T) {
	t.Parallel()
	n := newExportedNode(t)
	other := n.node.store.App(n.node.other)
	noFailure(t, other.CreateCredit(t.Context(), metering.Credit{ID: ids.New(), Key: "tokens", Name: "Tokens", Unit: "token", Revision: 1, CreatedAt: 1}))
	_, _, err := other.Deposit(t.Context(), store.Deposit{ID: ids.New(), Identity: "dora", CreditKey: "tokens", Amount: 1, CreatedAt: monthDay(2, 1).UnixMilli()})
	noFailure(t, err)
	_, err = n.node.store.Verification(n.node.other).Verify(t.Context(), verify.Options{New: true, Record: true, Now: 1})
	noFailure(t, err)
	folder := t.TempDir()
	err = n.export(t.Context(), folder, "2020-03")
	if err == nil || !strings.Contains(err.Error(), n.node.first.AppID.Format(ids.Application)+": entry ") {
		t.Errorf("got %v", err)
	}
	name := n.node.other.AppID.Format(ids.Application)
	if err := checkMonths(folder, &n.out); err != nil || !strings.Contains(n.out.String(), name+": complete through 2020-02") {
		t.Errorf("%s, %v", n.out.String(), err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := n.export(ended, t.TempDir(), "2020-03"); err == nil || strings.Contains(err.Error(), name) {
		t.Errorf("after the caller has stopped: %v", err)
	}
}

func TestMonthsOfATestClockWaitUntilTheyAreOver(t *testing.T) {
	t.Parallel()
	n := newExportedNode(t)
	ahead := 40 * 24 * time.Hour
	n.now = n.node.store.Clock().Time().Add(ahead)
	other := n.node.store.App(n.node.other)
	noFailure(t, other.CreateCredit(t.Context(), metering.Credit{ID: ids.New(), Key: "tokens", Name: "Tokens", Unit: "token", Revision: 1, CreatedAt: 1}))
	_, _, err := other.Deposit(t.Context(), store.Deposit{ID: ids.New(), Identity: "dora", CreditKey: "tokens", Amount: 1, CreatedAt: n.now.UnixMilli()})
	noFailure(t, err)
	_, err = n.node.store.Verification(n.node.other).Verify(t.Context(), verify.Options{New: true, Record: true, Now: 1})
	noFailure(t, err)
	n.node.exec(fmt.Sprintf(`UPDATE app_state SET clock_offset = %d`, 1000*ahead.Milliseconds()))
	noFailure(t, exporter{db: n.node.store, folder: t.TempDir(), before: lastMonth, out: &n.out}.run(t.Context(), n.node.other.AppID))
	if !strings.HasPrefix(n.out.String(), "Wrote 0 months") {
		t.Errorf("printed %.300s", n.out.String())
	}
}

func TestChangedMonthlyFilesAreFound(t *testing.T) {
	t.Parallel()
	n := newExportedNode(t)
	n.verify(t)
	good := filepath.Join(t.TempDir(), "months")
	noFailure(t, n.export(t.Context(), good, "2020-03"))
	for name, change := range map[string]func(path string){
		"an amount": func(path string) {
			file := filepath.Join(path, "2020-01.entries.jsonl.gz")
			writePacked(t, file, strings.Replace(string(readPacked(t, file)), `"deltaNanocredits":"-7"`, `"deltaNanocredits":"-8"`, 1))
		},
		"a closing balance": func(path string) {
			file := filepath.Join(path, "2020-02.wallets.jsonl.gz")
			writePacked(t, file, strings.Replace(string(readPacked(t, file)), `"98246"`, `"98247"`, 1))
		},
		"a file that ends early": func(path string) {
			noFailure(t, os.Truncate(filepath.Join(path, "2020-01.entries.jsonl.gz"), 200))
		},
		"a sum in the manifest": func(path string) {
			file := filepath.Join(path, "2020-02.json")
			noFailure(t, os.WriteFile(file, bytes.Replace(readPacked(t, file), []byte(`"entries": 2`), []byte(`"entries": 3`), 1), 0o600))
		},
		"a month that is missing": func(path string) { noFailure(t, os.Remove(filepath.Join(path, "2020-01.json"))) },
		"a month under another name": func(path string) {
			for _, suffix := range []string{entriesSuffix, walletsSuffix, manifestSuffix} {
				noFailure(t, os.Rename(filepath.Join(path, "2020-02"+suffix), filepath.Join(path, "2020-03"+suffix)))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			noFailure(t, os.CopyFS(folder, os.DirFS(good)))
			noFailure(t, checkMonths(folder, io.Discard))
			change(filepath.Join(folder, n.node.first.AppID.Format(ids.Application)))
			if err := checkMonths(folder, io.Discard); err == nil {
				t.Error("it is not found")
			}
		})
	}
	t.Run("and are not continued", func(t *testing.T) {
		file := filepath.Join(good, n.node.first.AppID.Format(ids.Application), "2020-02.wallets.jsonl.gz")
		writePacked(t, file, strings.Replace(string(readPacked(t, file)), `"98246"`, `"98247"`, 1))
		if err := n.export(t.Context(), good, "2020-04"); err == nil || !strings.Contains(err.Error(), "not the file of its manifest") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("an entry that was changed in the database is not written", func(t *testing.T) {
		n.node.exec(`UPDATE usage_events SET balance_after = balance_after + 1 WHERE seq = 100`)
		if err := n.export(t.Context(), t.TempDir(), "2020-03"); err == nil || !strings.Contains(err.Error(), "but the entry says") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("an entry that was deleted from the database is missed", func(t *testing.T) {
		n.node.exec(`DELETE FROM usage_events WHERE seq >= 100 AND seq < 150`)
		if err := n.export(t.Context(), t.TempDir(), "2020-03"); err == nil || !strings.Contains(err.Error(), "follows entry 99") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("the last entries of a wallet that were deleted from the database are missed", func(t *testing.T) {
		n.node.exec(`DELETE FROM usage_events`)
		n.node.exec(`DELETE FROM journal WHERE seq > 1`)
		if err := n.export(t.Context(), t.TempDir(), "2020-03"); err == nil || !strings.Contains(err.Error(), "but none after entry 1") {
			t.Errorf("got %v", err)
		}
	})
}

func TestExportCommand(t *testing.T) {
	t.Parallel()
	n := newExportedNode(t)
	environ := []string{"DATABASE_URL=" + n.node.url, "PURSER_SECRET_KEY=" + strings.Repeat("k", minSecretKey)}
	purser := func(args ...string) (string, error) {
		var out bytes.Buffer
		err := run(t.Context(), args, environ, &out, &out)
		return out.String(), err
	}
	folder := filepath.Join(t.TempDir(), "months")
	for name, args := range map[string][]string{
		"no folder":              {"export"},
		"two folders":            {"export", "--to", folder, "--check", folder},
		"a month that is none":   {"export", "--to", folder, "--before", "2020-13"},
		"an id of another kind":  {"export", "--to", folder, "--app", "wal_01jb8v3k9xf6tq2m4n5p7r8s0w"},
		"an unknown application": {"export", "--to", folder, "--app", ids.New().Format(ids.Application)},
		"a folder without files": {"export", "--check", t.TempDir()},
	} {
		if out, err := purser(args...); err == nil {
			t.Errorf("%s: printed %s", name, out)
		}
	}
	_, err := purser("verify", "--new")
	noFailure(t, err)
	lock, err := flock.Try(filepath.Join(makeTestFolder(t, folder), "export.lock"), flock.Exclusive)
	noFailure(t, err)
	if _, err := purser("export", "--to", folder, "--before", "2020-03"); err == nil || !strings.Contains(err.Error(), "another export") {
		t.Errorf("beside another export: %v", err)
	}
	lock.Release()
	t.Run("the guide's commands work", func(t *testing.T) { n.followGuide(t, environ) })
	app := n.node.first.AppID.Format(ids.Application)
	out, err := purser("export", "--to", folder, "--before", "2020-03", "--app", app)
	if err != nil || !strings.Contains(out, app+" 2020-01: 252 entries of 2 wallets") || !strings.Contains(out, "Wrote 2 months") {
		t.Errorf("printed %s, %v", out, err)
	}
	out, err = purser("export", "--check", folder)
	if err != nil || !strings.Contains(out, app+": complete through 2020-02, digest ") || !strings.Contains(out, "1 application, 2 months, 254 entries") {
		t.Errorf("printed %s, %v", out, err)
	}
}

// followGuide runs the commands of the guide, for the months of this node.
func (n *exportedNode) followGuide(t *testing.T, environ []string) {
	t.Helper()
	guide, err := os.ReadFile(filepath.Join("..", "..", "docs", "operating.md"))
	noFailure(t, err)
	_, section, _ := strings.Cut(string(guide), "\n## Monthly files\n")
	block := shellBlock.FindStringSubmatch(section)
	if block == nil || strings.Count(block[1], "purser ") != 3 {
		t.Fatalf("the guide has %q", block)
	}
	folder := filepath.Join(t.TempDir(), "months")
	for line := range strings.Lines(strings.Replace(block[1], "--to months", "--to months --before 2020-03", 1)) {
		args := strings.Fields(strings.ReplaceAll(strings.TrimPrefix(line, "purser "), " months", " "+folder))
		if err := run(t.Context(), args, environ, io.Discard, io.Discard); err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}
}

func TestIndexesOfEventsAreRebuiltBesideEvents(t *testing.T) {
	t.Parallel()
	n := newExportedNode(t)
	guide, err := os.ReadFile(filepath.Join("..", "..", "docs", "operating.md"))
	noFailure(t, err)
	_, section, _ := strings.Cut(string(guide), "\n## Data retention\n")
	_, section, _ = strings.Cut(section, "```sql\n")
	statement, _, found := strings.Cut(section, "```")
	if !found || !strings.HasPrefix(statement, "REINDEX") {
		t.Fatalf("the guide has %q", statement)
	}
	var tracking sync.WaitGroup
	tracking.Go(func() {
		for i := range 100 {
			if decision, err := n.usage.Track(n.chat("ann", fmt.Sprint("meanwhile ", i))); err != nil || decision.Err() != nil {
				t.Errorf("event %d: %v, %v", i, err, decision.Err())
			}
		}
	})
	n.node.exec(statement)
	tracking.Wait()
	n.verify(t)
	for _, event := range []string{"january 0", "meanwhile 99"} {
		decision, err := n.usage.Track(n.chat("ann", event))
		noFailure(t, err)
		if decision.Verdict != metering.Duplicate {
			t.Errorf("%s is %s", event, decision.Verdict)
		}
	}
}

func makeTestFolder(t *testing.T, path string) string {
	t.Helper()
	noFailure(t, makeFolder(path))
	return path
}
