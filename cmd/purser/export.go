package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"purser/ids"
	"purser/metering/monthly"
	"purser/store"
	"purser/store/embedded/flock"
	"purser/store/reports"
	"purser/tenancy"
)

// lastMonth is after every month that an export writes.
const lastMonth monthly.Month = "9999-12"

// exportMonths writes the entries of months that are over to files, or checks such files.
func exportMonths(ctx context.Context, c config, args []string, stdout, stderr io.Writer) (err error) {
	flags := flag.NewFlagSet("export", flag.ContinueOnError)
	to := flags.String("to", "", "folder for the files, one subfolder for each application")
	check := flags.String("check", "", "folder of files to check, without a database")
	before := flags.String("before", string(lastMonth), "the first month to leave out, such as 2026-10 (default the current one)")
	only := flags.String("app", "", "the id of one application (default all)")
	if err := c.parse(flags, args); err != nil {
		return err
	}
	if (*to == "") == (*check == "") {
		return errors.New("export: name a folder with --to FOLDER, or one to check with --check FOLDER")
	}
	if *check != "" && (*only != "" || *before != string(lastMonth)) {
		return errors.New("export: --check checks all files of its folder: leave out --app and --before")
	}
	if *check != "" {
		return checkMonths(*check, stdout)
	}
	e := exporter{folder: *to, out: stdout}
	if e.before, err = monthly.ParseMonth(*before); err != nil {
		return fmt.Errorf("--before: %w", err)
	}
	app, err := parseApp(*only)
	if err != nil {
		return err
	}
	db, err := openExisting(ctx, c, commandLog(stderr))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.close()) }()
	e.db = db.Store
	return e.run(ctx, app)
}

// exporter writes monthly files of applications to a folder.
type exporter struct {
	db     *store.Store
	folder string
	before monthly.Month
	out    io.Writer
}

func (e exporter) run(ctx context.Context, only ids.ID) error {
	scopes, err := scopesOf(ctx, e.db, only)
	if err != nil {
		return err
	}
	if err := makeFolder(e.folder); err != nil {
		return err
	}
	lock, err := flock.Try(filepath.Join(e.folder, "export.lock"), flock.Exclusive)
	if errors.Is(err, flock.ErrHeld) {
		return fmt.Errorf("another export is writing to %s", e.folder)
	}
	if err != nil {
		return err
	}
	defer lock.Release()
	written := int64(0)
	var failed error
	for _, scope := range scopes {
		months, err := e.application(ctx, scope)
		if written += months; err == nil {
			continue
		}
		failed = errors.Join(failed, fmt.Errorf("%s: %w", scope.AppID.Format(ids.Application), err))
		if e.ends(ctx, scope, err) {
			return failed
		}
	}
	_, err = fmt.Fprintf(e.out, "Wrote %s to %s. Check them with 'purser export --check %s'.\n", counted(written, "month", "months"), e.folder, e.folder)
	return errors.Join(failed, err)
}

// ends reports that an error is not about the entries of one application, so that no other
// is tried after it: the caller has stopped, or the disk or the database fails.
func (e exporter) ends(ctx context.Context, scope tenancy.Scope, err error) bool {
	if ctx.Err() != nil || errors.As(err, new(*fs.PathError)) || errors.As(err, new(*os.LinkError)) {
		return true
	}
	_, err = e.db.App(scope).ClockOffset(ctx)
	return err != nil
}

// parseApp reads --app, zero for all applications.
func parseApp(text string) (app ids.ID, err error) {
	if text == "" {
		return app, nil
	}
	if app, err = ids.Parse(ids.Application, text); err != nil {
		return app, fmt.Errorf("--app: %q is not the id of an application", text)
	}
	return app, nil
}

// scopesOf are all applications, or one.
func scopesOf(ctx context.Context, db *store.Store, only ids.ID) ([]tenancy.Scope, error) {
	if only.IsZero() {
		return db.Directory().Scopes(ctx)
	}
	scope, err := db.Directory().ScopeOf(ctx, only)
	if err != nil {
		return nil, fmt.Errorf("--app %s: %w", only.Format(ids.Application), err)
	}
	return []tenancy.Scope{scope}, nil
}

// application writes the months of an application that are over and not in its folder.
func (e exporter) application(ctx context.Context, scope tenancy.Scope) (written int64, err error) {
	folder := monthFolder{filepath.Join(e.folder, scope.AppID.Format(ids.Application)), scope.AppID.Format(ids.Application)}
	months, err := folder.months()
	if err != nil {
		return 0, err
	}
	var previous *monthly.Manifest
	var last monthly.Month
	if len(months) > 0 {
		if previous, err = folder.manifest(months[len(months)-1]); err != nil {
			return 0, err
		}
		last = previous.Month
	}
	first, err := e.db.Reports(scope).FirstWallet(ctx)
	if err != nil || first == 0 {
		return 0, err
	}
	// By the real clock: a test clock may be thousands of years ahead.
	for _, month := range monthly.Due(last, first, e.db.Clock().Now(), e.before) {
		if err := makeFolder(folder.path); err != nil {
			return written, err
		}
		manifest, size, err := folder.write(previous, month, func(w *monthly.Writer, opening *monthly.Closings) error {
			return e.wallets(ctx, scope, month, w, opening)
		})
		if err != nil {
			return written, err
		}
		fmt.Fprintf(e.out, "%s %s: %s of %s, %s.\n", folder.application, month, counted(manifest.Entries, "entry", "entries"),
			counted(manifest.Wallets, "wallet", "wallets"), counted(size, "byte", "bytes"))
		previous, written = &manifest, written+1
	}
	return written, nil
}

// wallets writes all wallets of an application, in the order of their ids.
func (e exporter) wallets(ctx context.Context, scope tenancy.Scope, month monthly.Month, w *monthly.Writer, opening *monthly.Closings) error {
	read := e.db.Reports(scope)
	for after := (ids.ID{}); ; {
		page, err := read.MonthlyWallets(ctx, after)
		if err != nil {
			return err
		}
		if len(page) == 0 {
			return opening.End()
		}
		after = page[len(page)-1].ID
		if err := exportPage(ctx, read, page, month, w, opening, scope.AppID.Format(ids.Application)); err != nil {
			return err
		}
	}
}

// exportPage reads the beginning of each wallet's part at once. Most wallets end there; the
// others are read on one by one.
func exportPage(
	ctx context.Context, read reports.App, page []reports.MonthlyWallet, month monthly.Month, w *monthly.Writer, opening *monthly.Closings, application string,
) error {
	accounts, positions := make([]*monthly.Account, len(page)), make([]reports.MonthlyPosition, len(page))
	for i, wallet := range page {
		account, err := opening.Account(application, wallet.ID.Format(ids.Wallet))
		if err != nil {
			return err
		}
		if account.Through() > wallet.LastSeq {
			return fmt.Errorf("wallet %s has %d entries, but %d in the files: they are of a newer database than this one. Export to another folder",
				wallet.ID.Format(ids.Wallet), wallet.LastSeq, account.Through())
		}
		accounts[i], positions[i] = account, reports.MonthlyPosition{WalletID: wallet.ID, After: account.Through()}
	}
	found, err := read.MonthlyEntries(ctx, positions)
	if err != nil {
		return err
	}
	for i, wallet := range page {
		entries := found[wallet.ID]
		for ended := false; !ended && accounts[i].Through() < wallet.LastSeq; {
			if entries == nil {
				next, err := read.MonthlyEntries(ctx, []reports.MonthlyPosition{{WalletID: wallet.ID, After: accounts[i].Through()}})
				if err != nil {
					return err
				}
				entries = next[wallet.ID]
			}
			if ended, err = takeEntries(w, accounts[i], entries, month, wallet); err != nil {
				return err
			}
			entries = nil
		}
		if accounts[i].Through() == 0 {
			continue // it may be newer than the month, whose files must not depend on when they are written
		}
		if err := w.Close(accounts[i]); err != nil {
			return err
		}
	}
	return nil
}

// takeEntries writes entries up to the first of a later month, and reports whether there is
// one.
func takeEntries(w *monthly.Writer, account *monthly.Account, entries []monthly.Entry, month monthly.Month, wallet reports.MonthlyWallet) (ended bool, err error) {
	if len(entries) == 0 {
		return false, fmt.Errorf("wallet %s has %d entries, but none after entry %d", wallet.ID.Format(ids.Wallet), wallet.LastSeq, account.Through())
	}
	for _, entry := range entries {
		if entry.CreatedAt >= month.End() {
			return true, nil
		}
		if entry.Seq > wallet.Sealed {
			return false, fmt.Errorf("entry %d of wallet %s is not verified and sealed: run 'purser verify --new' first", entry.Seq, entry.Wallet)
		}
		if err := w.Take(account, entry); err != nil {
			return false, err
		}
	}
	return false, nil
}
