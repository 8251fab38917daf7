package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"
)

// bench is one run: what it has set up, and what it has measured.
type bench struct {
	options  options
	harness  *harness
	progress io.Writer

	first, second                          *node
	main, alerted, neighbour, many, shared *tenant
	empty, full                            grown
	reference                              bool // pgbench's tables are there
	browser                                *browser
	pathParams                             *strings.Replacer // of paths, in the addresses of pages

	tenants []*tenant
	samples samples
}

// samples are the rounds of each scenario, by name.
type samples map[string][]sample

// sample is one measurement. What was not measured is zero.
type sample struct {
	Rate   float64 `json:"perSecond"`
	P50MS  float64 `json:"p50Ms,omitempty"`
	P99MS  float64 `json:"p99Ms,omitempty"`
	MeanMS float64 `json:"meanMs,omitempty"`
	// Microseconds of CPU for a request.
	ServerCPU    float64 `json:"serverCpuUs,omitempty"`
	PostgresCPU  float64 `json:"postgresCpuUs,omitempty"`
	GeneratorCPU float64 `json:"generatorCpuUs,omitempty"`
	// Percent of the machine that others took meanwhile.
	Strangers float64 `json:"othersCpuPercent,omitempty"`
	// Events accepted in all, and the bytes they brought: their rows with all
	// indexes, and the log of everything.
	Events      int64 `json:"events,omitempty"`
	StoredBytes int64 `json:"storedBytes,omitempty"`
	LogBytes    int64 `json:"walBytes,omitempty"`
}

// measure prepares each phase and goes through its rounds. Each round begins with another
// scenario: usage is added up every minute, which is about as long as a round takes, and
// would otherwise meet the same scenario every time.
func (b *bench) measure(ctx context.Context) error {
	b.samples = samples{}
	for number := range phases {
		scenarios := b.options.chosen(number)
		for _, s := range scenarios {
			if err := s.prepare(b, ctx); err != nil {
				return fmt.Errorf("preparing %s: %w", s.name, err)
			}
		}
		if err := b.settle(ctx); err != nil {
			return err
		}
		for round := range b.options.rounds {
			for i := range scenarios {
				s := scenarios[(i+roundShift*round)%len(scenarios)]
				got, err := s.run(b, ctx)
				if err != nil {
					return fmt.Errorf("%s: %w", s.name, err)
				}
				b.samples[s.name] = append(b.samples[s.name], got)
				fmt.Fprintf(b.progress, "round %d  %-24s %8.0f/s\n", round+1, s.name, got.Rate)
			}
		}
	}
	return nil
}

// roundShift is by how many scenarios a round is shifted against the one before.
const roundShift = 5

// settle leaves no work of the preparation to the first measurement.
func (b *bench) settle(ctx context.Context) error {
	settled := map[string]bool{}
	for _, t := range b.tenants {
		if settled[t.database] {
			continue
		}
		settled[t.database] = true
		if _, err := b.harness.postgres.query(ctx, t.database, "VACUUM ANALYZE"); err != nil {
			return err
		}
	}
	_, err := b.harness.postgres.query(ctx, mainDatabase, "CHECKPOINT")
	return err
}

func (b *bench) newTenant(ctx context.Context, n *node, name string, wallets int) (*tenant, error) {
	fmt.Fprintf(b.progress, "making %d wallets…\n", wallets)
	t, err := b.harness.newTenant(ctx, n, name, wallets)
	if err == nil {
		b.tenants = append(b.tenants, t)
	}
	return t, err
}

// sizesSQL is how much the events take, and how much log was written so far.
const sizesSQL = `SELECT pg_total_relation_size('usage_events'), pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')`

// load runs a load and turns its outcome into a sample.
func (b *bench) load(ctx context.Context, l load) (sample, error) {
	p := b.harness.postgres
	before, err := p.numbers(ctx, l.tenant.database, sizesSQL)
	if err != nil {
		return sample{}, err
	}
	var probes []cpu
	start := time.Now()
	w := window{from: start.Add(b.options.warmUp()), to: start.Add(b.options.warmUp() + b.options.length)}
	out, err := l.run(ctx, w, func() { probes = append(probes, cpuNow(p.postmaster, l.nodes)) })
	if out != nil {
		l.tenant.accepted += out.accepted
		if l.beside != nil {
			l.beside.tenant.accepted += out.beside
		}
	}
	if err != nil {
		return sample{}, l.nodes[0].explain(err)
	}
	after, err := p.numbers(ctx, l.tenant.database, sizesSQL)
	if err != nil {
		return sample{}, err
	}
	answered, used := float64(out.latencies.total)*float64(l.size()), probes[1].since(probes[0])
	return sample{
		Rate:         answered / b.options.length.Seconds(),
		P50MS:        ms(out.latencies.quantile(0.50)),
		P99MS:        ms(out.latencies.quantile(0.99)),
		ServerCPU:    us(used.servers) / answered,
		PostgresCPU:  us(used.postgres) / answered,
		GeneratorCPU: us(used.generator) / answered,
		Strangers:    used.others(b.options.length),
		Events:       int64(out.accepted + out.beside),
		StoredBytes:  after[0] - before[0],
		LogBytes:     after[1] - before[1],
	}, nil
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
func us(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
