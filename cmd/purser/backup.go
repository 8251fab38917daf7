package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"purser/store"
	"purser/store/backup"
	"purser/store/verify"
)

// writeBackup writes the database to a file, beside running servers.
func writeBackup(ctx context.Context, c config, args []string, stdout, stderr io.Writer) (err error) {
	path, err := c.parseFile(flag.NewFlagSet("backup", flag.ContinueOnError), args)
	if err != nil {
		return err
	}
	if err := requireDatabase(c); err != nil {
		return err
	}
	log := commandLog(stderr)
	db, err := startDatabase(ctx, c, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.close()) }()
	major, err := store.CheckBackup(ctx, db.address, log)
	if err != nil {
		return err
	}
	started := time.Now()
	size, err := backup.Dump(ctx, db.address, major, path)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "Wrote %s: %s, in %s.\nTo restore it you also need %s. Keep a copy of it elsewhere.\n",
		path, counted(size, "byte", "bytes"), time.Since(started).Round(time.Millisecond), keyToKeep(c))
	return err
}

// keyToKeep names the key without which the secrets of a backup cannot be read.
func keyToKeep(c config) string {
	if c.secretKey != "" || c.databaseURL != "" {
		return "PURSER_SECRET_KEY"
	}
	return filepath.Join(c.data, secretFile)
}

// restoreBackup fills an empty database from a file and verifies it. Until that is done,
// no server uses the database.
func restoreBackup(ctx context.Context, c config, args []string, stdout, stderr io.Writer) (err error) {
	flags := flag.NewFlagSet("restore", flag.ContinueOnError)
	accept := flags.Bool("accept-differences", false, "finish even if verification finds differences, or the database cancels a check")
	path, err := c.parseFile(flags, args)
	if err != nil {
		return err
	}
	archive, err := os.Open(path)
	if err != nil {
		return err
	}
	defer archive.Close()
	if err := backup.Check(archive); err != nil {
		return err
	}
	sum, err := digest(archive)
	if err != nil {
		return err
	}
	log := commandLog(stderr)
	db, err := startDatabase(ctx, c, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.close()) }()
	restore, err := store.BeginRestore(ctx, db.address, sum, log)
	if err != nil {
		return err
	}
	defer restore.Close(context.WithoutCancel(ctx))
	if restore.Loaded {
		fmt.Fprintln(stdout, "An earlier restore loaded this file. Continuing with its verification.")
	} else if err := backup.Load(ctx, db.address, restore.Major, archive); err != nil {
		return err
	}
	if err := db.open(ctx, c, log, restore.Prepare, true); err != nil {
		return err
	}
	_, err = verifyEverything(ctx, db.Store, verify.Options{}, stdout)
	if err := restored(err, *accept); err != nil {
		return err
	}
	if err := restore.Finish(ctx); err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "Restored %s. To serve it you also need the secret key from the time of the backup, in %s.\n", path, keyToKeep(c))
	return err
}

// restored is why a verified database is refused.
func restored(verified error, accept bool) error {
	switch open := errors.Is(verified, errDiffers) || errors.Is(verified, errUnfinished); {
	case open && accept:
		return nil
	case open:
		return fmt.Errorf("%w: servers refuse the restored database; to use it as it is, restore the file again with --accept-differences", verified)
	}
	return verified
}

// digest reads a file to its end and returns to the beginning.
func digest(file *os.File) ([]byte, error) {
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		return nil, err
	}
	_, err := file.Seek(0, io.SeekStart)
	return hash.Sum(nil), err
}

// commandLog is for commands that print their result: warnings only.
func commandLog(stderr io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
}
