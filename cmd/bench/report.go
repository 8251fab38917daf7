package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"
)

// report is everything that a run found out.
type report struct {
	Machine  string   `json:"machine"`
	Rounds   int      `json:"rounds"`
	Seconds  float64  `json:"seconds"`
	Figures  []line   `json:"figures"`
	Accounts accounts `json:"accounts"`
	Samples  samples  `json:"samples"`
}

// line is a figure as it came out.
type line struct {
	Name    string  `json:"name"`
	Value   float64 `json:"value"`
	Floor   float64 `json:"floor,omitempty"`
	Aim     float64 `json:"aim,omitempty"`
	Verdict string  `json:"verdict,omitempty"`
}

func (b *bench) report(ctx context.Context) (r report, err error) {
	r = report{Rounds: b.options.rounds, Seconds: b.options.length.Seconds(), Samples: b.samples}
	if r.Machine, err = b.harness.machine(); err != nil {
		return r, err
	}
	for _, f := range figures {
		if value := f.value(b.samples); value != 0 {
			r.Figures = append(r.Figures, line{f.name, value, f.floor, f.aim, f.verdict(value)})
		}
	}
	r.Accounts, err = b.audit(ctx)
	return r, err
}

// machine says what the figures depend on, and nothing by which the machine
// could be distinguished from another of its kind.
func (h *harness) machine() (string, error) {
	sync, err := syncTime(h.folder)
	return fmt.Sprintf("%d cores, %s/%s, Postgres %s, %s, %.0f µs to sync a page to disk",
		runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, h.postgres.version, runtime.Version(), us(sync)), err
}

// syncTime is the median of some writes to the disk: a commit cannot be faster,
// and on a disk in memory it takes next to nothing.
func syncTime(folder string) (time.Duration, error) {
	file, err := os.OpenFile(filepath.Join(folder, "sync"), os.O_CREATE|os.O_WRONLY|syscall.O_DSYNC, 0o600)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	var took []float64
	page := make([]byte, 8<<10)
	for range 101 {
		start := time.Now()
		if _, err := file.WriteAt(page, 0); err != nil {
			return 0, err
		}
		took = append(took, float64(time.Since(start)))
	}
	return time.Duration(middle(took)), nil
}

func (r report) print(out io.Writer) {
	fmt.Fprintf(out, "\n%s. Medians of %d × %v s.\n\n", r.Machine, r.Rounds, r.Seconds)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "FIGURE\tVALUE\tFLOOR\tAIM\tVERDICT")
	for _, l := range r.Figures {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", l.Name, short(l.Value), short(l.Floor), short(l.Aim), l.Verdict)
	}
	fmt.Fprintf(table, "wrong balances, of %d\t%d\t0\t0\t%s\n", r.Accounts.Wallets, r.Accounts.WrongBalances,
		figure{floor: 0.5, aim: 0.5, lowIsGood: true}.verdict(float64(r.Accounts.WrongBalances)))
	fmt.Fprintf(table, "events accepted and not stored\t%d\t0\t0\t\n\n", r.Accounts.Accepted-r.Accounts.Stored)

	fmt.Fprintln(table, "MEASURED\t/S\tP50 MS\tP99 MS\tCPU µS OF SERVER\tPOSTGRES\tGENERATOR\tOTHERS %\tROUNDS, /S")
	for _, name := range scenarioNames() {
		rounds := r.Samples[name]
		if len(rounds) == 0 {
			continue
		}
		fmt.Fprint(table, name)
		for _, what := range []func(sample) float64{rate, p50OrMean, p99, serverCPU, postgresCPU, generatorCPU, otherCPU} {
			fmt.Fprintf(table, "\t%s", short(median(name, what)(r.Samples)))
		}
		var rates []string
		for _, s := range rounds {
			rates = append(rates, short(s.Rate))
		}
		fmt.Fprintf(table, "\t%s\n", strings.Join(rates, " "))
	}
	table.Flush()
	if busiest := r.otherCPU(); busiest > quiet {
		fmt.Fprintf(out, "\nOthers used up to %.0f %% of the machine: rates and latencies say little, CPU and bytes still hold.\n", busiest)
	}
}

// quiet is the percentage that the kernel alone comes to on an idle machine.
const quiet = 15

// otherCPU is the most that others took in any round.
func (r report) otherCPU() (most float64) {
	for _, rounds := range r.Samples {
		for _, s := range rounds {
			most = max(most, s.Strangers)
		}
	}
	return most
}

func serverCPU(s sample) float64    { return s.ServerCPU }
func generatorCPU(s sample) float64 { return s.GeneratorCPU }
func otherCPU(s sample) float64     { return s.Strangers }
func p50OrMean(s sample) float64    { return max(s.P50MS, s.MeanMS) } // pgbench tells the mean only

// short shows as many digits as say something; nothing for what was not measured.
func short(v float64) string {
	switch {
	case v == 0:
		return "–"
	case v >= 100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case v >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

func (r report) write(path string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}
