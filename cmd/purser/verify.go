package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"time"

	"purser/ids"
	"purser/store"
	"purser/views/component"
)

// verify recomputes applications from their journals and lists what differs.
func verify(ctx context.Context, args, environ []string, stdout, stderr io.Writer) (err error) {
	c, err := readConfig(environ)
	if err != nil {
		return err
	}
	var recent, limit time.Duration
	var options store.VerifyOptions
	flags := flag.NewFlagSet("verify", flag.ContinueOnError)
	flags.BoolVar(&options.New, "new", false, "only entries that no pass has verified yet")
	flags.DurationVar(&recent, "since", 0, "those, and again what was entered in this time, such as 10m")
	flags.DurationVar(&limit, "limit", 0, "stop after this time, such as 5m; never when absent")
	if err := c.parse(flags, args); err != nil {
		return err
	}
	if recent < 0 {
		return errors.New("--since must be a time back, such as 10m")
	}
	if limit < 0 {
		return errors.New("--limit must be a time, such as 5m")
	}
	db, err := openDatabase(ctx, c, slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: slog.LevelWarn})))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.close()) }()
	started := time.Now()
	now := db.Clock().Time()
	if recent > 0 {
		options.Since = now.Add(-recent)
	}
	options.Record, options.Now = true, now.UnixMilli()
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limit, fmt.Errorf("stopped after the time limit of %s; what was verified until then stays recorded", limit))
		defer cancel()
	}
	defer func() {
		if cause := context.Cause(ctx); err != nil && cause != nil {
			err = errors.Join(cause, err)
		}
	}()
	books, err := verifyAll(ctx, db.Store, options, stdout)
	if err != nil {
		return err
	}
	if err := verifyApplications(ctx, db.Store, &books, stdout); err != nil {
		return err
	}
	if err := verifyAudit(ctx, db.Store, &books, stdout); err != nil {
		return err
	}
	counted := func(n int64, one, many string) string { return fmt.Sprint(n, " ", component.Noun(n, one, many)) }
	fmt.Fprintf(stdout, "%s, %s, %s: %s, in %s.\n",
		counted(books.applications, "application", "applications"), counted(books.wallets, "wallet", "wallets"),
		counted(books.entries, "entry", "entries"), counted(books.differences, "difference", "differences"), time.Since(started).Round(time.Millisecond))
	if books.differences > 0 {
		return errDiffers
	}
	return nil
}

var errDiffers = errors.New("the books differ from the journal")

// books is what all applications add up to.
type books struct {
	applications, wallets, entries, differences int64
}

func verifyAll(ctx context.Context, s *store.Store, options store.VerifyOptions, out io.Writer) (books, error) {
	var all books
	scopes, err := s.Directory().Scopes(ctx)
	if err != nil {
		return all, err
	}
	for _, scope := range scopes {
		v, err := s.App(scope).VerifyWith(ctx, options)
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
	}
	return all, nil
}

// verifyApplications finds rows of applications that do not exist. It needs a role
// that row-level security does not bind, and says so when it has none.
func verifyApplications(ctx context.Context, s *store.Store, all *books, out io.Writer) error {
	list, checked, err := s.Directory().StrayApplications(ctx)
	if err != nil {
		return err
	}
	if !checked {
		fmt.Fprintln(out, "Rows of applications that do not exist were not looked for: the role in DATABASE_URL would need BYPASSRLS.")
	}
	all.differences += int64(len(list))
	for _, stray := range list {
		fmt.Fprintf(out, "%s: %s has rows of it, but the application does not exist\n", stray.AppID.Format(ids.Application), stray.Table)
	}
	return nil
}

// verifyAudit follows the audit log of every organization. It prints where each
// ends: kept in another place, that line shows even a log that was rewritten whole.
func verifyAudit(ctx context.Context, s *store.Store, all *books, out io.Writer) error {
	organizations, err := s.Directory().OrganizationIDs(ctx)
	if err != nil {
		return err
	}
	for _, id := range organizations {
		v, err := s.Org(id).VerifyAudit(ctx)
		if err != nil {
			return err
		}
		all.differences += int64(len(v.Differences))
		for _, d := range v.Differences {
			fmt.Fprintf(out, "%s: the audit log is not whole: %s\n", id.Format(ids.Organization), d)
		}
		if v.Head.Number > 0 {
			fmt.Fprintf(out, "%s: the audit log ends with entry %d, sealed %x.\n", id.Format(ids.Organization), v.Head.Number, v.Head.Seal)
		}
	}
	return nil
}
