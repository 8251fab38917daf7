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
	// BaseURL is the server's public address, and Transport serves it: the API and the
	// sandbox, without a rate limit.
	BaseURL   string
	Transport http.RoundTripper
	Now       func() int64
	// Begin is called before seeding, unless the demo exists.
	Begin func()
}

// Welcome is what the demo prints at its start.
type Welcome struct {
	People   []Person
	Password string // of all users; empty when an earlier start has shown it
	Path     string // of the application's pages
}

var (
	errNotEmpty    = errors.New("--demo is for an empty database, and this one has accounts or organizations: start without it, or with another --data folder")
	errStopped     = errors.New("stopped before the demo was whole")
	errInterrupted = errors.New("an earlier start with --demo was interrupted and has left half of it: remove the database, or take another --data folder, and start again")
)

// Seed creates the demo, unless it exists. It takes some seconds, and the server must
// not be serving yet.
func Seed(ctx context.Context, o Options) (Welcome, error) {
	there, err := o.isSeeded(ctx)
	if err != nil || there {
		return Welcome{People: users, Path: path}, err
	}
	o.Begin()
	s, err := o.createOrganization(ctx)
	if err != nil {
		return Welcome{}, err
	}
	switch err := s.run(ctx); {
	case ctx.Err() != nil:
		return Welcome{}, errStopped
	case err != nil:
		return Welcome{}, fmt.Errorf("demo: %w", err)
	}
	return Welcome{People: users, Password: s.password, Path: path}, nil
}

// isSeeded reports whether an earlier start has created the demo. The last user joins
// when all else is done, so the demo is complete when that user exists.
func (o Options) isSeeded(ctx context.Context) (bool, error) {
	founded, err := o.hasAccount(ctx, users[0])
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
	whole, err := o.hasAccount(ctx, users[len(users)-1])
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

// The demo's names. Slugs derive from them, because an empty database has no others.
const (
	organizationName = "Lumen"
	applicationName  = "Studio"
	path             = "/o/lumen/a/studio"
)

// story is the state of the demo while it is created.
type story struct {
	Options
	password    string
	encoded     string // the password's hash
	org         tenancy.Organization
	app         tenancy.Application
	staff       map[tenancy.Role]tenancy.User
	backend     backend // uses a key with all permissions
	edge        backend // uses a key that only tracks usage
	now         int64   // by the application's clock
	clockOffset int64   // when now was read
	failed      error   // the first step that failed
}

// do does a step, unless one before it has failed.
func (s *story) do(step func() error) {
	if s.failed == nil {
		s.failed = step()
	}
}

// run simulates all days, from the first account to the present.
func (s *story) run(ctx context.Context) error {
	chapters := []func(context.Context){s.addMembers, s.makeKeys, s.describe, s.fillCatalog, s.createCustomers}
	for day := range days {
		chapters = append(chapters, func(ctx context.Context) { s.runDay(ctx, day) })
	}
	chapters = append(chapters, s.createSupportCases, s.makeOtherKeys, s.addLastMember, s.archivePrototype, s.rollUpUsage)
	for _, chapter := range chapters {
		if chapter(ctx); s.failed != nil {
			return s.failed
		}
	}
	return nil
}

// rollUpUsage adds up the usage: nothing else writes to the application yet. The second
// run counts up to the time of its clock, which the first has read.
func (s *story) rollUpUsage(ctx context.Context) {
	for range 2 {
		s.do(func() error {
			_, err := s.Store.Rollups(s.app.Scope()).RollUp(ctx, 0)
			return err
		})
	}
}
