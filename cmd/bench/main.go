package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// options are the command line options.
type options struct {
	rounds    int
	length    time.Duration // of one measurement
	only      []string
	quick     bool
	pageLoads int // at each page
	many      int // wallets that count as many
	stored    int // events that count as many
	json      string
	program   string
	folder    string
}

const (
	fewWallets = 1000
	maxWallets = 10_000_000 - 1 - fewWallets // what the digits of an identity can number
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	switch {
	case err == nil:
	case errors.Is(err, flag.ErrHelp):
		os.Exit(2)
	default:
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run is the program, with its arguments and outputs passed in.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	o, err := readOptions(args, stderr)
	if err != nil {
		return err
	}
	fmt.Fprintln(stderr, "starting Postgres and Purser…")
	h, err := newHarness(ctx, o)
	if h != nil {
		defer func() { err = errors.Join(err, h.close()) }()
	}
	if err != nil {
		return err
	}
	b := &bench{options: o, harness: h, progress: stderr}
	if err := b.measure(ctx); err != nil {
		if ctx.Err() != nil {
			return ctx.Err() // what broke off broke off because of it
		}
		return err
	}
	rep, err := b.report(ctx)
	if err != nil {
		return err
	}
	rep.print(stdout)
	if o.json != "" {
		err = rep.write(o.json)
	}
	return errors.Join(err, rep.Accounts.fault())
}

func readOptions(args []string, stderr io.Writer) (o options, err error) {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	// Many short rounds: a shared machine is faster in one minute than in the next, and
	// all that is compared should meet both.
	flags.IntVar(&o.rounds, "rounds", 9, "`rounds` of which the median counts")
	seconds := flags.Float64("seconds", 3, "`length` of one measurement")
	flags.BoolVar(&o.quick, "quick", false, "one round of two seconds, without the stored events and the pages")
	only := flags.String("only", "", "measure only these, by `names` parted by commas: "+strings.Join(scenarioNames(), " ")+"; a name also stands for all that begin with it and a dash")
	flags.IntVar(&o.pageLoads, "looks", 200, "`times` that each page is asked for, as far as the length allows")
	flags.IntVar(&o.many, "wallets", 1_000_000, "`count` of wallets in the measurements with many")
	flags.IntVar(&o.stored, "stored", 10_000_000, "`count` of events in the measurements with many stored")
	flags.StringVar(&o.json, "json", "", "write everything that was measured to this `file`")
	flags.StringVar(&o.program, "purser", "", "measure this `program` instead of building one")
	flags.StringVar(&o.folder, "folder", "", "make the database in this `folder`, on the disk to measure (the system's temporary one when absent)")
	if err := flags.Parse(args); err != nil {
		return o, flag.ErrHelp
	}
	if o.quick {
		o.rounds, *seconds = 1, 2
	}
	o.length = time.Duration(*seconds * float64(time.Second))
	if *only != "" {
		o.only = strings.Split(*only, ",")
	}
	return o, o.check(flags.Args())
}

func (o options) check(rest []string) error {
	switch {
	case len(rest) > 0:
		return fmt.Errorf("there is no argument %q", rest[0])
	case o.rounds < 1:
		return errors.New("--rounds must be at least 1")
	case o.length <= 0:
		return errors.New("--seconds must be more than 0")
	case o.pageLoads < 1:
		return errors.New("--looks must be at least 1")
	case o.many < 1 || o.many > maxWallets:
		return fmt.Errorf("--wallets must be from 1 to %d", maxWallets)
	case o.stored < fewWallets || o.stored%fewWallets != 0:
		return fmt.Errorf("--stored must be a multiple of %d, the count of wallets that share the events", fewWallets)
	}
	for _, name := range o.only {
		if !known(name) {
			return fmt.Errorf("--only: there is no measurement %q", name)
		}
	}
	return nil
}
