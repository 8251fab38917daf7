package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"

	"purser/ids"
	"purser/metering/monthly"
	"purser/store/packing"
	"purser/tenancy"
)

// leastKept is how many whole months events stay unpacked at least: most repeats, reversals
// and lists of all customers are about them.
const leastKept = 2

// packEvents packs the usage events of past months.
func packEvents(ctx context.Context, args, environ []string, stdout, stderr io.Writer) (err error) {
	c, err := readConfig(environ)
	if err != nil {
		return err
	}
	flags := flag.NewFlagSet("pack", flag.ContinueOnError)
	keep := flags.Int("keep", 0, "how many whole months before the current one stay as they are, at least 2")
	only := flags.String("app", "", "the id of one application (default all)")
	if err := c.parse(flags, args); err != nil {
		return err
	}
	if *keep < leastKept {
		return fmt.Errorf("pack: say how many whole months stay as they are with --keep MONTHS, at least %d", leastKept)
	}
	log := commandLog(stderr)
	db, err := openDatabase(ctx, c, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.close()) }()
	scopes, err := exporter{db: db.Store}.scopes(ctx, *only)
	if err != nil {
		return err
	}
	p, err := packing.Open(ctx, db.address, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	total := int64(0)
	for _, scope := range scopes {
		packed, err := packApplication(ctx, db, p, scope, *keep, stdout)
		total += packed
		if err != nil {
			return fmt.Errorf("%s: %w", scope.AppID.Format(ids.Application), err)
		}
	}
	_, err = fmt.Fprintf(stdout, "Packed %s. Postgres reuses the space after its next VACUUM of usage_events.\n", counted(total, "event", "events"))
	return err
}

func packApplication(ctx context.Context, db *database, p *packing.Packer, scope tenancy.Scope, keep int, stdout io.Writer) (int64, error) {
	offset, err := db.App(scope).ClockOffset(ctx)
	if err != nil {
		return 0, err
	}
	first, err := db.Reports(scope).FirstWallet(ctx)
	if err != nil {
		return 0, err
	}
	now := db.Clock().Time().UnixMilli() + offset
	last := monthly.MonthOf(now)
	for range keep + 1 {
		last = last.Previous()
	}
	if first == 0 || first >= last.End() {
		return 0, nil // it has no events of that time
	}
	r, err := p.Pack(ctx, scope, last.End(), now)
	if r.Events > 0 {
		fmt.Fprintf(stdout, "%s: packed %s until the end of %s.\n", scope.AppID.Format(ids.Application), counted(r.Events, "event", "events"), monthly.MonthOf(r.Before-1))
	}
	return r.Events, err
}
