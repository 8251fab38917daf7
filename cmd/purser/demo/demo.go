package demo

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"purser/fault"
	"purser/store"
	"purser/tenancy"
)

// Options are what the demo needs from the server that it fills.
type Options struct {
	Store *store.Store
	// BaseURL is the server's public address, and Transport what answers there: the
	// API and the sandbox, without a limit on requests.
	BaseURL   string
	Transport http.RoundTripper
	Now       func() int64
	// Begin is called before the work, when there is any to do.
	Begin func()
}

// Welcome is what whoever started the demo has to know.
type Welcome struct {
	People   []Person
	Password string // of all of them; empty when an earlier start has shown it
	Path     string // of the application's pages
}

var (
	errNotEmpty    = errors.New("--demo is for an empty database, and this one has accounts or organizations: start without it, or with another --data folder")
	errStopped     = errors.New("stopped before the demo was whole")
	errInterrupted = errors.New("an earlier start with --demo was interrupted and has left half of it: remove the database, or take another --data folder, and start again")
)

// Seed makes the demo, unless it is there already. It takes some seconds, and the
// server must not have begun to serve.
func Seed(ctx context.Context, o Options) (Welcome, error) {
	there, err := o.isThere(ctx)
	if err != nil || there {
		return Welcome{People: people, Path: path}, err
	}
	o.Begin()
	t, err := o.open(ctx)
	if err != nil {
		return Welcome{}, err
	}
	switch err := t.live(ctx); {
	case ctx.Err() != nil:
		return Welcome{}, errStopped
	case err != nil:
		return Welcome{}, fmt.Errorf("demo: %w", err)
	}
	return Welcome{People: people, Password: t.password, Path: path}, nil
}

// isThere reports whether an earlier start has made the demo. The last of its people
// joins when all else is done, so an account of the last one means the whole.
func (o Options) isThere(ctx context.Context) (bool, error) {
	founded, err := o.hasAccount(ctx, people[0])
	if err != nil {
		return false, err
	}
	if !founded {
		organizations, err := o.Store.Directory().OrganizationIDs(ctx)
		if err == nil && len(organizations) > 0 {
			err = errNotEmpty
		}
		return false, err
	}
	whole, err := o.hasAccount(ctx, people[len(people)-1])
	if err == nil && !whole {
		err = errInterrupted
	}
	return whole, err
}

func (o Options) hasAccount(ctx context.Context, p Person) (bool, error) {
	_, err := o.Store.Auth().Account(ctx, p.Email)
	if fault.Is(err, fault.PathNotFound) {
		return false, nil
	}
	return err == nil, err
}

// The demo's own names. Slugs follow from them, as an empty database has no others.
const (
	organizationName = "Lumen"
	applicationName  = "Studio"
	path             = "/o/lumen/a/studio"
)

// tale is the demo while it is being made.
type tale struct {
	Options
	password string
	encoded  string // the password's hash
	org      tenancy.Organization
	app      tenancy.Application
	staff    map[tenancy.Role]tenancy.User
	backend  backend // of the organization's customers, with a key that may do everything
	edge     backend // the part of it that tracks usage
	now      int64   // by the application's clock
}

// live goes through the days, from the first account to the present.
func (t *tale) live(ctx context.Context) error {
	chapters := []func(context.Context) error{t.hire, t.makeKeys, t.describe, t.fillCatalog, t.openShop}
	for day := range days {
		chapters = append(chapters, func(ctx context.Context) error { return t.spend(ctx, day) })
	}
	chapters = append(chapters, t.meetSupport, t.makeOtherKeys, t.hireLast)
	for _, chapter := range chapters {
		if err := chapter(ctx); err != nil {
			return err
		}
	}
	return nil
}
