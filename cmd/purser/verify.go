package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"time"

	"purser/ids"
	"purser/store"
	"purser/store/verify"
	"purser/views/component"
)

// verifyBooks recomputes applications from their journals and lists differences.
func verifyBooks(ctx context.Context, c config, args []string, stdout, stderr io.Writer) (err error) {
	v := verification{out: stdout}
	var watch time.Duration
	flags := flag.NewFlagSet("verify", flag.ContinueOnError)
	flags.BoolVar(&v.onlyNew, "new", false, "verify only entries that no pass has verified yet")
	durationFlag(flags, &v.recent, "since", "like --new, plus entries from this time, such as 10m")
	durationFlag(flags, &v.limit, "limit", "stop after this time, such as 5m (default never)")
	durationFlag(flags, &watch, "watch", "repeat with this pause, such as 15m, and export the result at PURSER_METRICS_ADDR (default once)")
	if err := c.parse(flags, args); err != nil {
		return err
	}
	if v.onlyNew && v.recent > 0 {
		return errors.New("verify: use --new or --since, not both: --since 10m verifies new entries and those of the last ten minutes")
	}
	log := commandLog(stderr)
	if watch > 0 {
		log = slog.New(slog.NewTextHandler(stderr, nil))
	}
	db, err := openExisting(ctx, c, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.close()) }()
	v.db = db.Store
	if watch > 0 {
		return v.watch(ctx, watch, c.metricsAddr, log)
	}
	_, err = v.run(ctx)
	return err
}

// verification is the command's pass over all applications.
type verification struct {
	db            *store.Store
	onlyNew       bool
	recent, limit time.Duration
	out           io.Writer
}

// kind is how metrics name the pass.
func (v verification) kind() verify.Kind {
	if v.onlyNew || v.recent > 0 {
		return verify.NewEntries
	}
	return verify.AllEntries
}

// run makes one pass within its time limit.
func (v verification) run(ctx context.Context) (books totals, err error) {
	options := verify.Options{New: v.onlyNew}
	if v.recent > 0 {
		options.Since = v.db.Clock().Time().Add(-v.recent)
	}
	if v.limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, v.limit, fmt.Errorf("stopped after the time limit of %s; recorded progress is kept", v.limit))
		defer cancel()
	}
	defer func() {
		if cause := context.Cause(ctx); err != nil && cause != nil {
			err = errors.Join(cause, err)
		}
	}()
	return verifyEverything(ctx, v.db, options, v.out)
}

// verifyEverything verifies all applications and the installation, records the result,
// and prints it with a sum. Its error says that it found differences or did not finish.
func verifyEverything(ctx context.Context, db *store.Store, options verify.Options, stdout io.Writer) (totals, error) {
	started := time.Now()
	options.Record, options.Now = true, db.Clock().Time().UnixMilli()
	books, err := verifyAll(ctx, db, options, stdout)
	if err != nil {
		return books, err
	}
	if err := printInstallation(ctx, db, &books, stdout); err != nil {
		return books, err
	}
	fmt.Fprintf(stdout, "%s, %s, %s: %s, in %s.\n",
		counted(books.applications, "application", "applications"), counted(books.wallets, "wallet", "wallets"),
		counted(books.entries, "entry", "entries"), counted(books.differences, "difference", "differences"), time.Since(started).Round(time.Millisecond))
	switch {
	case books.differences > 0:
		return books, errDiffers
	case books.unfinished > 0:
		return books, errUnfinished
	}
	return books, nil
}

var (
	errDiffers    = errors.New("stored data differs from the journal")
	errUnfinished = errors.New("the database canceled some checks, which took longer than their limit")
)

// totals are summed over all applications.
type totals struct {
	applications, wallets, entries, differences, unfinished int64
}

func verifyAll(ctx context.Context, s *store.Store, options verify.Options, out io.Writer) (totals, error) {
	var all totals
	scopes, err := s.Directory().Scopes(ctx)
	if err != nil {
		return all, err
	}
	for _, scope := range scopes {
		v, err := s.Verification(scope).Verify(ctx, options)
		if err != nil {
			return all, err
		}
		all.applications++
		all.wallets += v.Wallets
		all.entries += v.Entries
		all.differences += int64(len(v.Differences))
		for _, d := range v.Differences {
			fmt.Fprintf(out, "%s %s\n", scope.AppID.Format(ids.Application), d)
		}
		if v.More {
			fmt.Fprintf(out, "%s: and more\n", scope.AppID.Format(ids.Application))
		}
		all.unfinished += int64(len(v.Unfinished))
		for _, rule := range v.Unfinished {
			fmt.Fprintf(out, "%s: not finished: %s\n", scope.AppID.Format(ids.Application), rule)
		}
		if !options.New && options.Since.IsZero() {
			if err := printDigest(ctx, s.Verification(scope), scope.AppID.Format(ids.Application), out); err != nil {
				return all, err
			}
		}
	}
	return all, nil
}

// printInstallation prints what belongs to no application. The head of an audit log,
// kept elsewhere, detects even a log that was rewritten completely.
func printInstallation(ctx context.Context, s *store.Store, all *totals, out io.Writer) error {
	found, err := verifyInstallation(ctx, s)
	if err == nil && !found.straysChecked {
		fmt.Fprintln(out, "Skipped the check for rows of unknown applications: the role in DATABASE_URL needs BYPASSRLS.")
	}
	all.differences += int64(len(found.differences))
	for _, line := range slices.Concat(found.differences, found.ends) {
		fmt.Fprintln(out, line)
	}
	return err
}

// printDigest prints the digest over the seals of an application.
func printDigest(ctx context.Context, app verify.App, name string, out io.Writer) error {
	d, err := app.SealDigest(ctx)
	if err != nil || d.Wallets == 0 {
		return err
	}
	_, err = fmt.Fprintf(out, "%s: sealed %s with %s, digest %x.\n", name,
		counted(d.Wallets, "wallet", "wallets"), counted(d.Entries, "entry", "entries"), d.Digest)
	return err
}

func counted(n int64, one, many string) string {
	return fmt.Sprint(n, " ", component.Noun(n, one, many))
}
