package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strconv"
	"strings"

	"purser/ids"
	"purser/metering/monthly"
	"purser/store/packing"
	"purser/tenancy"
)

// leastKept is how many whole months events stay unpacked at least: most repeats, reversals
// and lists of all customers are about them.
const leastKept = 2

// mostKept is longer than any application exists.
const mostKept = 1200

// maxSkipLines is how many skipped wallets of an application are printed. Without a
// verification before it, a run skips all of them.
const maxSkipLines = 100

// packEvents packs the usage events of past months.
func packEvents(ctx context.Context, c config, args []string, stdout, stderr io.Writer) (err error) {
	flags := flag.NewFlagSet("pack", flag.ContinueOnError)
	var keep int
	flags.Func("keep", "how many whole months before the current one stay as they are, at least 2", func(text string) error {
		keep, _ = strconv.Atoi(text) // zero is refused below
		return nil
	})
	only := flags.String("app", "", "the id of one application (default all)")
	tablespace := flags.String("tablespace", "", "the tablespace of Postgres that packed events are moved to (default where they are)")
	if err := c.parse(flags, args); err != nil {
		return err
	}
	if keep < leastKept || keep > mostKept {
		return fmt.Errorf("pack: say how many whole months stay as they are with --keep MONTHS, at least %d and at most %d", leastKept, mostKept)
	}
	app, err := parseApp(*only)
	if err != nil {
		return err
	}
	log := commandLog(stderr)
	db, err := openExisting(ctx, c, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.close()) }()
	scopes, err := scopesOf(ctx, db.Store, app)
	if err != nil {
		return err
	}
	p, err := packing.Open(ctx, db.address, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	if *tablespace != "" {
		moved, err := p.MoveTo(ctx, *tablespace)
		if err != nil {
			return err
		}
		if moved {
			fmt.Fprintf(stdout, "Packed events are in the tablespace %s now.\n", *tablespace)
		}
	}
	var total packing.Result
	skipped := int64(0) // applications
	for _, scope := range scopes {
		before, now, err := packUntil(ctx, db, scope, keep)
		if err != nil {
			return fmt.Errorf("%s: %w", scope.AppID.Format(ids.Application), err)
		}
		if before == 0 {
			continue
		}
		packed, err := packApplication(ctx, p, scope, before, now, stdout)
		total.Events += packed.Events
		total.Skipped += packed.Skipped
		switch {
		case err == nil:
		case p.Ends(ctx, err):
			return fmt.Errorf("%s: %w", scope.AppID.Format(ids.Application), err)
		default:
			skipped++
			fmt.Fprintf(stdout, "%s: skipped: %s\n", scope.AppID.Format(ids.Application), oneLine{err})
		}
	}
	if _, err := fmt.Fprintf(stdout, "Packed %s.\n", counted(total.Events, "event", "events")); err != nil {
		return err
	}
	p.Rebuilds = func() {
		fmt.Fprintln(stdout, "Running VACUUM on usage_events, and rebuilding its index of transactions. Usage continues meanwhile. "+
			"The rebuild waits for transactions that are open now, such as a backup.")
	}
	if err := p.RebuildIndex(ctx); err != nil {
		return err
	}
	var left []string
	if skipped > 0 {
		left = append(left, counted(skipped, "application", "applications"))
	}
	if total.Skipped > 0 {
		left = append(left, counted(total.Skipped, "wallet", "wallets"))
	}
	if left != nil {
		return fmt.Errorf("pack: skipped %s, for the reasons above: run it again when they are fixed", strings.Join(left, " and "))
	}
	return nil
}

// packUntil is the end of the last month to pack of an application, 0 when it has no events
// of that time, and its time now.
func packUntil(ctx context.Context, db *database, scope tenancy.Scope, keep int) (before, now int64, err error) {
	offset, err := db.App(scope).ClockOffset(ctx)
	if err != nil {
		return 0, 0, err
	}
	first, err := db.Reports(scope).FirstWallet(ctx)
	if err != nil {
		return 0, 0, err
	}
	now = db.Clock().Time().UnixMilli() + offset
	last := monthly.MonthOf(now)
	for range keep + 1 {
		last = last.Previous()
	}
	if first == 0 || first >= last.End() {
		return 0, now, nil
	}
	return last.End(), now, nil
}

func packApplication(ctx context.Context, p *packing.Packer, scope tenancy.Scope, before, now int64, stdout io.Writer) (r packing.Result, err error) {
	app, lines := scope.AppID.Format(ids.Application), int64(0)
	p.Continues = func(end int64) {
		fmt.Fprintf(stdout, "%s: continues an earlier run, which packs events until the end of %s.\n", app, monthly.MonthOf(end-1))
	}
	p.Skipped = func(wallet ids.ID, reason error) {
		if lines++; lines <= maxSkipLines {
			fmt.Fprintf(stdout, "%s: skipped wallet %s: %s\n", app, wallet.Format(ids.Wallet), oneLine{reason})
		}
	}
	r, err = p.Pack(ctx, scope, before, now)
	if lines > maxSkipLines {
		fmt.Fprintf(stdout, "%s: skipped %s more.\n", app, counted(lines-maxSkipLines, "wallet", "wallets"))
	}
	if r.Events > 0 && err == nil {
		fmt.Fprintf(stdout, "%s: packed %s until the end of %s.\n", app, counted(r.Events, "event", "events"), monthly.MonthOf(r.Before-1))
	}
	return r, err
}
