package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"

	"purser/store"
	"purser/tenancy"
	"purser/tenancy/credential"
)

// resetPassword gives somebody another password. There is no link by mail: whoever
// can run this could read the database, and hands the password over themselves.
func resetPassword(ctx context.Context, args, environ []string, stdout, stderr io.Writer) error {
	var withoutFactor bool
	flags := flag.NewFlagSet("users reset", flag.ContinueOnError)
	flags.BoolVar(&withoutFactor, "without-authenticator", false, "turn the authenticator off as well")
	return forPerson(ctx, flags, args, environ, stderr, func(db *database, email string, now int64) error {
		password := rand.Text()
		encoded, err := credential.HashPassword(password, rand.Reader)
		if err != nil {
			return err
		}
		err = db.Entrance().ResetPassword(ctx, store.Reset{Email: email, Encoded: encoded, RemovesFactor: withoutFactor, By: store.CommandLine(now)})
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(stdout, "%s is signed out everywhere, and signs in with this password, which is shown this once.\n"+
			"It is to be changed then, under Your account:\n\n%s\n", email, password)
		return err
	})
}

// makeOwner puts an organization into somebody's hands.
func makeOwner(ctx context.Context, args, environ []string, stdout, stderr io.Writer) error {
	var org string
	flags := flag.NewFlagSet("users own", flag.ContinueOnError)
	flags.StringVar(&org, "org", "", "name of the organization")
	return forPerson(ctx, flags, args, environ, stderr, func(db *database, email string, now int64) error {
		if org == "" {
			return errors.New("users own needs --org")
		}
		made, err := db.Entrance().MakeOwner(ctx, org, email, store.CommandLine(now))
		switch {
		case err != nil:
		case made:
			_, err = fmt.Fprintf(stdout, "%s is an owner of %s now, and is signed out everywhere: it takes a new session to use that.\n", email, org)
		default:
			_, err = fmt.Fprintf(stdout, "%s is an owner of %s already.\n", email, org)
		}
		return err
	})
}

// forPerson reads whom a command is about, and does the work on the database.
func forPerson(ctx context.Context, flags *flag.FlagSet, args, environ []string, stderr io.Writer, work func(db *database, email string, now int64) error) (err error) {
	c, err := readConfig(environ)
	if err != nil {
		return err
	}
	address := flags.String("email", "", "address of the account")
	if err := c.parse(flags, args); err != nil {
		return err
	}
	email, err := tenancy.ParseEmail(*address)
	if err != nil {
		return fmt.Errorf("--email: %w", err)
	}
	db, err := openDatabase(ctx, c, slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: slog.LevelWarn})))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.close()) }()
	return work(db, email, db.Clock().Now())
}
