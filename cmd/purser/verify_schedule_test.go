package main

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"purser/ids"
	"purser/metering"
	"purser/store"
	"purser/store/people"
	"purser/store/storetest"
	"purser/store/verify"
	"purser/tenancy"
)

func TestVerificationsRunWhenTheyAreDueAndTellWhatTheyFind(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	url := storetest.FreshURL(t)
	db, err := store.Open(ctx, url, store.Options{})
	must(err)
	t.Cleanup(db.Close)
	org, err := tenancy.NewOrganization(ids.New(), "Books", 1)
	must(err)
	draft, err := tenancy.NewApplication(ids.New(), org, "Books", false, 1)
	must(err)
	application, err := db.Directory().ProvisionIn(ctx, people.OrgRef{Name: org.Name}, org, draft)
	must(err)
	app := db.App(application.Scope())
	must(app.CreateCredit(ctx, metering.Credit{ID: ids.New(), Key: "tokens", Name: "Tokens", Unit: "token", Revision: 1, CreatedAt: 1}))
	key := "first"
	_, _, err = app.Deposit(ctx, store.Deposit{ID: ids.New(), Identity: "ann", CreditKey: "tokens", Amount: 5, IdempotencyKey: &key, CreatedAt: 1})
	must(err)

	registry, log := prometheus.NewRegistry(), &bytes.Buffer{}
	now := time.UnixMilli(1_800_000_000_000)
	node := verifier{
		store: db, new: time.Hour, all: 24 * time.Hour, limit: time.Hour, now: func() time.Time { return now },
		slots: verifySlots(verifyAtOnce), meters: newVerifyMetrics(registry), log: slog.New(slog.NewTextHandler(log, nil)),
	}
	other := node
	other.meters = newVerifyMetrics(prometheus.NewRegistry())
	// ran tells which kinds have finished since the clock was moved.
	ran := func() (kinds string, runs []verify.Run) {
		t.Helper()
		node.run(ctx)
		other.run(ctx) // finds nothing left to do
		runs, err := db.Verification(application.Scope()).Runs(ctx)
		must(err)
		for _, r := range runs {
			if r.FinishedAt == now.UnixMilli() {
				kinds += string(r.Kind) + " "
			}
		}
		return strings.TrimSpace(kinds), runs
	}
	if kinds, runs := ran(); kinds != "new all" || runs[1].Entries != 1 || runs[0].Differences+runs[1].Differences != 0 {
		t.Errorf("at first %q ran: %+v", kinds, runs)
	}
	now = now.Add(59 * time.Minute)
	if kinds, _ := ran(); kinds != "" {
		t.Errorf("before the hour was over, %q ran", kinds)
	}
	now = now.Add(time.Minute)
	if kinds, _ := ran(); kinds != "new" {
		t.Errorf("after an hour, %q ran", kinds)
	}

	storetest.Exec(t, url, `UPDATE balances SET amount_nanocredits = 6`)
	now = now.Add(24 * time.Hour)
	kinds, runs := ran()
	if kinds != "new all" || runs[1].Differences != 1 || !strings.Contains(runs[1].Lines[0], `(customer "ann")`) {
		t.Errorf("after a day %q ran: %+v", kinds, runs)
	}
	if text := log.String(); !strings.Contains(text, `level=ERROR msg="verification found a difference"`) {
		t.Errorf("the log says %s", text)
	}
	families, err := registry.Gather()
	must(err)
	counted := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			counted[family.GetName()] += metric.GetCounter().GetValue()
		}
	}
	if counted["purser_verify_differences_total"] != 1 || counted["purser_verify_runs_total"] != 7 { // two are of the installation
		t.Errorf("the metrics are %v", counted)
	}

	// A node that dies leaves a claim, which ends with the time limit.
	node.new, other.new = 0, 0
	now = now.Add(24 * time.Hour)
	if claimed, err := db.Verification(application.Scope()).Claim(ctx, verify.AllEntries, now.UnixMilli(), node.all, node.limit); err != nil || !claimed {
		t.Fatalf("claimed %t, %v", claimed, err)
	}
	now = now.Add(59 * time.Minute)
	if kinds, _ := ran(); kinds != "" {
		t.Errorf("%q ran beside another node", kinds)
	}
	now = now.Add(2 * time.Minute)
	if kinds, _ := ran(); kinds != "all" {
		t.Errorf("%q ran after the other node had died", kinds)
	}
}
