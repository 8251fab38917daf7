package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"purser/store/embedded"
)

// postgres is the embedded server with the programs that it came with.
type postgres struct {
	server     *embedded.Server
	postmaster int
	programs   string // folder of psql and pgbench, empty for those on the PATH
	version    string
}

// find learns from the running server who it is and where its programs are.
func (p *postgres) find() error {
	note, err := os.ReadFile(filepath.Join(p.server.Home(), "cluster", "postmaster.pid"))
	if err != nil {
		return err
	}
	line, _, _ := strings.Cut(string(note), "\n")
	if p.postmaster, err = strconv.Atoi(line); err != nil {
		return fmt.Errorf("the postmaster's number: %w", err)
	}
	if program, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", p.postmaster)); err == nil {
		p.programs = filepath.Dir(program)
	}
	p.version, err = p.query(context.Background(), mainDatabase, "SHOW server_version")
	return err
}

func (p *postgres) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	path := name
	if p.programs != "" {
		path = filepath.Join(p.programs, name)
	}
	return exec.CommandContext(ctx, path, args...)
}

// query runs statements and returns the rows, columns parted by "|".
func (p *postgres) query(ctx context.Context, database, sql string) (string, error) {
	psql := p.command(ctx, "psql", "--no-psqlrc", "--quiet", "--tuples-only", "--no-align",
		"--set=ON_ERROR_STOP=1", "--dbname="+p.server.URL(database))
	psql.Stdin = strings.NewReader(sql)
	out, err := output(psql)
	return strings.TrimSpace(out), err
}

// numbers is query for a single row of whole numbers.
func (p *postgres) numbers(ctx context.Context, database, sql string) ([]int64, error) {
	row, err := p.query(ctx, database, sql)
	if err != nil {
		return nil, err
	}
	var numbers []int64
	for field := range strings.SplitSeq(row, "|") {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("psql answered %q", row)
		}
		numbers = append(numbers, n)
	}
	return numbers, nil
}

const (
	refDatabase = "bench_ref"
	refScale    = 10
	refThreads  = 2
)

// prepareReference makes pgbench's own tables.
func (p *postgres) prepareReference(ctx context.Context) error {
	if _, err := p.query(ctx, mainDatabase, "CREATE DATABASE "+refDatabase); err != nil {
		return err
	}
	_, err := output(p.command(ctx, "pgbench", "--initialize", "--quiet", "--scale="+strconv.Itoa(refScale), p.server.URL(refDatabase)))
	return err
}

var (
	countLine   = regexp.MustCompile(`(?m)^number of transactions actually processed: (\d+)`)
	tpsLine     = regexp.MustCompile(`(?m)^tps = ([0-9.]+)`)
	latencyLine = regexp.MustCompile(`(?m)^latency average = ([0-9.]+) ms`)
)

// reference runs one of pgbench's built-in scripts.
func (p *postgres) reference(ctx context.Context, script string, clients int, d time.Duration) (sample, error) {
	pgbench := p.command(ctx, "pgbench", "--no-vacuum", "--protocol=prepared", "--builtin="+script,
		"--client="+strconv.Itoa(clients), "--jobs="+strconv.Itoa(min(clients, refThreads)),
		"--time="+strconv.Itoa(max(1, int(d.Seconds()))), p.server.URL(refDatabase))
	start, before := time.Now(), cpuNow(p.postmaster, nil)
	out, err := output(pgbench)
	if err != nil {
		return sample{}, err
	}
	used := cpuNow(p.postmaster, nil).since(before)
	used.generator += pgbench.ProcessState.UserTime() + pgbench.ProcessState.SystemTime()
	s := sample{Strangers: used.others(time.Since(start))}
	var count float64
	for line, into := range map[*regexp.Regexp]*float64{countLine: &count, tpsLine: &s.Rate, latencyLine: &s.MeanMS} {
		match := line.FindStringSubmatch(out)
		if match == nil {
			return sample{}, fmt.Errorf("pgbench said %q", out)
		}
		if *into, err = strconv.ParseFloat(match[1], 64); err != nil {
			return sample{}, err
		}
	}
	s.PostgresCPU, s.GeneratorCPU = over(us(used.postgres), count), over(us(used.generator), count)
	return s, nil
}

// output runs a program and puts what it complained of into the error.
func output(command *exec.Cmd) (string, error) {
	var out, complaint bytes.Buffer
	command.Stdout, command.Stderr = &out, &complaint
	if err := command.Run(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", filepath.Base(command.Path), err, bytes.TrimSpace(complaint.Bytes()))
	}
	return out.String(), nil
}
