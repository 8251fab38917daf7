package main

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"time"
)

// tick is the unit of CPU time in /proc, on every Linux there is.
const tick = 10 * time.Millisecond

// cpu is the CPU time that each side has used so far. Where there is no /proc,
// only our own is known and the others stay zero.
type cpu struct{ postgres, servers, generator, machine time.Duration }

func (c cpu) since(before cpu) cpu {
	return cpu{c.postgres - before.postgres, c.servers - before.servers, c.generator - before.generator, c.machine - before.machine}
}

// others is the percentage of the machine that went to none of the measured
// while so much time passed: other programs, other machines on the same host, and
// the kernel's work for no one in particular.
func (c cpu) others(passed time.Duration) float64 {
	share := float64(c.machine-c.postgres-c.servers-c.generator) / float64(passed) / float64(runtime.NumCPU())
	return 100 * max(share, 0)
}

func cpuNow(postmaster int, nodes []*node) cpu {
	now := cpu{postgres: cluster(postmaster), generator: ours(), machine: machine()}
	for _, n := range nodes {
		if s, ok := statOf(n.pid()); ok {
			now.servers += s.used
		}
	}
	return now
}

// machine adds up all time in which a core was not idle.
func machine() time.Duration {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	line, _, _ := bytes.Cut(text, []byte("\n"))
	// cpu user nice system idle iowait irq softirq steal; the rest is counted in user.
	var sum time.Duration
	for i, field := range bytes.Fields(line) {
		n, err := strconv.ParseInt(string(field), 10, 64)
		if err == nil && i != 4 && i != 5 && i <= 8 {
			sum += tick * time.Duration(n)
		}
	}
	return sum
}

// cluster adds up a postmaster and its children. Those that have ended are in
// what the postmaster collected from them.
func cluster(postmaster int) time.Duration {
	parent, ok := statOf(postmaster)
	if !ok {
		return 0
	}
	sum := parent.used + parent.collected
	entries, _ := os.ReadDir("/proc") // it was there a moment ago
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		if child, ok := statOf(pid); ok && child.parent == postmaster {
			sum += child.used
		}
	}
	return sum
}

type stat struct {
	parent    int
	used      time.Duration
	collected time.Duration // of children that have ended
}

func statOf(pid int) (s stat, ok bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return s, false
	}
	// The name of the program may hold anything, even a bracket; after its last
	// one the fields begin with the third of proc(5).
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) < 15 {
		return s, false
	}
	number := func(field int) time.Duration {
		n, _ := strconv.ParseInt(string(fields[field-3]), 10, 64) // the kernel wrote it
		return time.Duration(n)
	}
	s.parent = int(number(4))
	s.used = tick * (number(14) + number(15))
	s.collected = tick * (number(16) + number(17))
	return s, true
}

func ours() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
