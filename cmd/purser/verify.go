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

// verify recomputes every application from its journal and lists what differs.
func verify(ctx context.Context, args, environ []string, stdout, stderr io.Writer) (err error) {
	c, err := readConfig(environ)
	if err != nil {
		return err
	}
	var recent time.Duration
	flags := flag.NewFlagSet("verify", flag.ContinueOnError)
	flags.DurationVar(&recent, "since", 0, "only what was entered in this time, such as 10m; everything when absent")
	if err := c.parse(flags, args); err != nil {
		return err
	}
	if recent < 0 {
		return errors.New("--since must be a time back, such as 10m")
	}
	db, err := openDatabase(ctx, c, slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: slog.LevelWarn})))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.close()) }()
	started := time.Now()
	var since time.Time
	if recent > 0 {
		since = started.Add(-recent)
	}
	books, err := verifyAll(ctx, db.Store, since, stdout)
	if err != nil {
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

func verifyAll(ctx context.Context, s *store.Store, since time.Time, out io.Writer) (books, error) {
	var all books
	scopes, err := s.Directory().Scopes(ctx)
	if err != nil {
		return all, err
	}
	for _, scope := range scopes {
		v, err := s.App(scope).Verify(ctx, since)
		if err != nil {
			return all, err
		}
		all.applications++
		all.wallets += v.Wallets
		all.entries += v.Entries
		all.differences += int64(len(v.Differences))
		for _, d := range v.Differences {
			fmt.Fprintf(out, "%s %s: not so: %s (%s)\n", scope.AppID.Format(ids.Application), d.WalletID.Format(ids.Wallet), d.Check, d.Detail)
		}
		if v.More {
			fmt.Fprintf(out, "%s: and more\n", scope.AppID.Format(ids.Application))
		}
	}
	return all, nil
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
