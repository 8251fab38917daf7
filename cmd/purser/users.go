package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"time"

	"purser/store/people"
	"purser/tenancy"
	"purser/tenancy/credential"
)

// resetPassword sets a temporary password, which only allows choosing another. No email
// is sent: an operator who can run this could read the database, and hands the password
// over in person.
func resetPassword(ctx context.Context, c config, args []string, stdout, stderr io.Writer) error {
	var withoutFactor bool
	flags := flag.NewFlagSet("users reset", flag.ContinueOnError)
	flags.BoolVar(&withoutFactor, "without-authenticator", false, "turn the authenticator off as well")
	email, err := parseUser(&c, flags, args)
	if err != nil {
		return err
	}
	return withExisting(ctx, c, stderr, func(db *database, now int64) error {
		password := rand.Text()
		encoded, err := credential.HashPassword(password, rand.Reader)
		if err != nil {
			return err
		}
		err = db.Auth().ResetPassword(ctx, people.Reset{Email: email, Encoded: encoded, RemovesFactor: withoutFactor, By: people.CommandLine(now)})
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(stdout, "%s is signed out everywhere. This temporary password works for %s and only to choose a new one.\n"+
			"It is shown only once:\n\n%s\n", email, hours(people.ResetLasts), password)
		return err
	})
}

func makeOwner(ctx context.Context, c config, args []string, stdout, stderr io.Writer) error {
	var org orgFlags
	flags := flag.NewFlagSet("users own", flag.ContinueOnError)
	org.define(flags)
	email, err := parseUser(&c, flags, args)
	if err != nil {
		return err
	}
	if org == (orgFlags{}) {
		return errors.New("users own needs --org or --org-slug")
	}
	ref, err := org.ref()
	if err != nil {
		return err
	}
	return withExisting(ctx, c, stderr, func(db *database, now int64) error {
		made, err := db.Auth().MakeOwner(ctx, ref, email, people.CommandLine(now))
		switch {
		case err != nil:
		case made:
			_, err = fmt.Fprintf(stdout, "%s is now an owner of %s. They need to sign in again.\n", email, ref)
		default:
			_, err = fmt.Fprintf(stdout, "%s is already an owner of %s.\n", email, ref)
		}
		return err
	})
}

// parseUser reads a command's flags and returns the email address of its user.
func parseUser(c *config, flags *flag.FlagSet, args []string) (email string, err error) {
	address := flags.String("email", "", "email address of the account")
	if err := c.parse(flags, args); err != nil {
		return "", err
	}
	if email, err = tenancy.ParseEmail(*address); err != nil {
		return "", fmt.Errorf("--email: %w", err)
	}
	return email, nil
}

// withExisting runs a command on the database.
func withExisting(ctx context.Context, c config, stderr io.Writer, work func(db *database, now int64) error) (err error) {
	db, err := openExisting(ctx, c, commandLog(stderr))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.close()) }()
	return work(db, db.Clock().Now())
}

func hours(d time.Duration) string { return fmt.Sprintf("%.0f hours", d.Hours()) }
