package main

import (
	"slices"
	"strings"
)

// figure is a line of the table. Most are ratios of medians, since those hold on
// other machines too.
type figure struct {
	name       string
	value      func(samples) float64 // 0 when it was not measured
	floor, aim float64               // none when both are 0
	lowIsGood  bool
}

var figures = []figure{
	{"events/s ÷ pgbench TPC-B, 64 each", ratio("events-64", "pgbench-tpcb-64", rate), 3.3, 4, false},
	{"events/s ÷ pgbench simple update, 64 each", ratio("events-64", "pgbench-simple-64", rate), 1.3, 2.0, false},
	{"CPU of a pgbench TPC-B ÷ of an event, 64 each", ratio("pgbench-tpcb-64", "events-64", allCPU), 0, 0, false},
	{"CPU of a pgbench simple update ÷ of an event", ratio("pgbench-simple-64", "events-64", allCPU), 0, 0, false},
	{"events/s with an alert rule on every wallet ÷ without", ratio("alerts-64", "events-64", rate), 0.95, 0.99, false},
	{"CPU of an event with an alert rule ÷ without", ratio("alerts-64", "events-64", allCPU), 0, 0, true},
	{"one hot wallet ÷ 1,000 wallets", ratio("hot-wallet", "events-64", rate), 0.8, 1.0, false},
	{"many wallets (Zipf) ÷ 1,000 wallets", ratio("many-wallets", "events-64", rate), 0.75, 0.95, false},
	{"events/s ÷ pgbench simple update, 1 each", ratio("events-1", "pgbench-simple-1", rate), 0.45, 0.5, false},
	{"p99 ÷ p50, 64 connections", latencySpread, 3, 2, true},
	{"events/s, 256 ÷ 64 connections", ratio("events-256", "events-64", rate), 1.2, 1.4, false},
	{"checks/s ÷ events/s", ratio("check", "events-64", rate), 1.6, 2.5, false},
	{"batches of 100, events/s ÷ single events/s", ratio("batches-100", "events-64", rate), 2.5, 3, false},
	{"batches of 100, events/s ÷ pgbench TPC-B", ratio("batches-100", "pgbench-tpcb-64", rate), 8, 11, false},
	{"a neighbour's p99 beside batches ÷ alone, 64 connections", ratio("neighbour-flooded", "neighbour-calm", p99), 2.5, 2, true},
	{"a light neighbour's p99 beside batches ÷ alone, 4", ratio("light-neighbour-flooded", "light-neighbour-calm", p99), 0, 0, true},
	{"two nodes on shared wallets ÷ one node", ratio("two-nodes", "events-64", rate), 0.6, 0.9, false},
	{"Postgres CPU an event, many stored ÷ none", ratio("stored-many", "stored-none", postgresCPU), 1.2, 1.1, true},
	{"events/s, many stored ÷ none", ratio("stored-many", "stored-none", rate), 0, 0, false},
	{"bytes stored an event, with indexes", bytesAnEvent(stored, "events-64", "events-1", "events-16", "events-256", "mixed"), 395, 330, true},
	{"bytes stored an event, one application alone", bytesAnEvent(stored, "stored-none"), 0, 0, true},
	{"bytes of log an event", bytesAnEvent(logged, "events-64"), 0, 0, true},
	{"slowest page, p99 ms", slowestPage, 50, 20, true},
	{"4 checks to 1 event, requests/s ÷ events/s", ratio("mixed", "events-64", rate), 0, 0, false},
}

func rate(s sample) float64        { return s.Rate }
func p50(s sample) float64         { return s.P50MS }
func p99(s sample) float64         { return s.P99MS }
func postgresCPU(s sample) float64 { return s.PostgresCPU }

// allCPU holds on a machine that others use too, where rates do not: the more
// processes a side has, the more of the machine it then gets.
func allCPU(s sample) float64 { return s.ServerCPU + s.PostgresCPU + s.GeneratorCPU }

func latencySpread(all samples) float64 {
	return over(median("events-64", p99)(all), median("events-64", p50)(all))
}

func ratio(of, to string, what func(sample) float64) func(samples) float64 {
	return func(all samples) float64 { return over(median(of, what)(all), median(to, what)(all)) }
}

func stored(s sample) int64 { return s.StoredBytes }
func logged(s sample) int64 { return s.LogBytes }

// bytesAnEvent adds all rounds up, since an index grows by leaps: the pages of a
// thousand wallets that are used evenly are full at about the same time.
func bytesAnEvent(what func(sample) int64, scenarios ...string) func(samples) float64 {
	return func(all samples) float64 {
		var bytes, events int64
		for _, name := range scenarios {
			for _, s := range all[name] {
				bytes += what(s)
				events += s.Events
			}
		}
		return over(float64(bytes), float64(events))
	}
}

func over(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// slowestPage is the worst of all pages, each by the median of its rounds.
func slowestPage(all samples) (worst float64) {
	for name := range all {
		if strings.HasPrefix(name, pagePrefix) {
			worst = max(worst, median(name, p99)(all))
		}
	}
	return worst
}

// median is that of the scenario's rounds, or 0 when it was not measured.
func median(scenario string, what func(sample) float64) func(samples) float64 {
	return func(all samples) float64 {
		var values []float64
		for _, s := range all[scenario] {
			values = append(values, what(s))
		}
		return middle(values)
	}
}

func middle(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	half := len(values) / 2
	if len(values)%2 == 1 {
		return values[half]
	}
	return (values[half-1] + values[half]) / 2
}

// verdict says how a value stands to floor and aim.
func (f figure) verdict(value float64) string {
	reaches := func(mark float64) bool {
		if f.lowIsGood {
			return value <= mark
		}
		return value >= mark
	}
	switch {
	case f.floor == 0 && f.aim == 0:
		return ""
	case reaches(f.aim):
		return "aim reached"
	case reaches(f.floor):
		return "floor held"
	}
	return "FLOOR MISSED"
}
