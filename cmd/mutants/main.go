package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

func main() {
	only := flag.String("only", "", "only the bugs whose names contain this")
	part := flag.String("part", "1/1", "which part of the bugs, such as 2/3: parts can run beside each other")
	root := flag.String("module", ".", "folder of the module")
	atOnce := flag.Int("at-once", 2, "how many bugs are seeded at once, each in a copy of the module")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *root, *only, *part, max(1, *atOnce)); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, root, only, part string, atOnce int) error {
	chosen, err := choose(only, part)
	if err != nil {
		return err
	}
	copies := make(chan string, atOnce)
	for range atOnce {
		copied, err := copyModule(root)
		if err != nil {
			return err
		}
		defer os.RemoveAll(copied)
		copies <- copied
	}
	copied := <-copies
	if err := soundWithout(ctx, copied, chosen); err != nil {
		return err
	}
	copies <- copied
	var seeded errgroup.Group
	seeded.SetLimit(atOnce)
	var escaped atomic.Int64
	for _, m := range chosen {
		seeded.Go(func() error {
			copied := <-copies
			defer func() { copies <- copied }()
			started := time.Now()
			verdict, detail := judge(ctx, copied, m)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			line := fmt.Sprintf("%-16s %-62s %5.1fs  %s\n", verdict, m.name, time.Since(started).Seconds(), m.tests)
			if verdict != caught {
				escaped.Add(1)
				line += indent(detail) + "\n"
			}
			fmt.Print(line)
			return nil
		})
	}
	if err := seeded.Wait(); err != nil {
		return err
	}
	fmt.Printf("%d of %d bugs caught\n", len(chosen)-int(escaped.Load()), len(chosen))
	if escaped.Load() > 0 {
		return errors.New("not every bug was caught")
	}
	return nil
}

// choose takes the bugs whose names contain only, and of those each parts-th.
func choose(only, part string) (chosen []mutant, err error) {
	var number, parts int
	if _, err := fmt.Sscanf(part, "%d/%d", &number, &parts); err != nil || number < 1 || number > parts {
		return nil, fmt.Errorf("a part is written as 2/3, not %q", part)
	}
	matching := 0
	for _, m := range mutants {
		if !strings.Contains(m.name, only) {
			continue
		}
		if matching%parts == number-1 {
			chosen = append(chosen, m)
		}
		matching++
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("no bug of part %s has %q in its name", part, only)
	}
	return chosen, nil
}

// soundWithout runs the tests on the source as it is.
func soundWithout(ctx context.Context, root string, chosen []mutant) error {
	tests := make(map[string]string)
	for _, m := range chosen {
		if tests[m.pkg] != "" {
			tests[m.pkg] += "|"
		}
		tests[m.pkg] += m.tests
	}
	for pkg, names := range tests {
		known, err := list(ctx, root, pkg)
		if err != nil {
			return fmt.Errorf("the tests of %s cannot be listed:\n%s", pkg, indent(known))
		}
		for name := range strings.SplitSeq(names, "|") {
			if !slices.Contains(strings.Fields(known), name) {
				return fmt.Errorf("%s has no test %s", pkg, name)
			}
		}
		if output, err := test(ctx, root, pkg, names); err != nil {
			return fmt.Errorf("the tests of %s fail without any bug:\n%s", pkg, indent(output))
		}
	}
	return nil
}

// indent keeps the end of a long text, where the reason stands.
func indent(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if len(lines) > 40 {
		lines = lines[len(lines)-40:]
	}
	return "\t" + strings.Join(lines, "\n\t")
}
