package store_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"purser/fault"
	"purser/ids"
	"purser/metering"
	"purser/store"
	"purser/store/people"
	"purser/store/storetest"
	"purser/tenancy"
)

// lastSlug is the number of the last spelling of a slug that is tried in order.
const lastSlug = 1000

// foundOrganization has a new user create an organization.
func foundOrganization(t *testing.T, db *store.Store, name string) (tenancy.Organization, error) {
	t.Helper()
	requested, err := tenancy.NewOrganization(ids.New(), name, moment)
	noError(t, err)
	user, err := tenancy.NewUser(ids.New(), ids.New().String()+"@example.com", "Ann", moment)
	noError(t, err)
	noError(t, store.CreateUser(t.Context(), db, user))
	return db.User(user.ID).CreateOrganization(t.Context(), requested, people.CommandLine(moment))
}

func TestOrganizations(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t)

	t.Run("number their slug when it is taken, also all at once", func(t *testing.T) {
		t.Parallel()
		name := uniqueName("acme")
		slugs := together(t, 8, func(int) (string, error) {
			org, err := foundOrganization(t, db, name)
			return org.Slug, err
		})
		var want []string
		for n := range 8 {
			if n == 0 {
				want = append(want, name)
			} else {
				want = append(want, tenancy.NumberedSlug(name, n+1))
			}
		}
		slices.Sort(slugs)
		if slices.Sort(want); !slices.Equal(slugs, want) {
			t.Errorf("they are %v", slugs)
		}
	})

	t.Run("take the last spelling of a slug, and then random ones", func(t *testing.T) {
		t.Parallel()
		url := storetest.FreshURL(t)
		db, owner := openStore(t, url), connect(t, url)
		exec(t, owner, `INSERT INTO organizations (id, slug, name, created_at)
			SELECT gen_random_uuid(), CASE n WHEN 1 THEN 'acme' ELSE 'acme-' || n END, 'Acme', 0 FROM generate_series(1, $1) n`, lastSlug-1)
		if org, err := foundOrganization(t, db, "Acme"); err != nil || org.Slug != fmt.Sprintf("acme-%d", lastSlug) {
			t.Errorf("the last one is %s, %v", org.Slug, err)
		}
		for range 2 {
			org, err := foundOrganization(t, db, "Acme")
			noError(t, err)
			if number, err := strconv.Atoi(strings.TrimPrefix(org.Slug, "acme-")); err != nil || number <= lastSlug {
				t.Errorf("the next one is %s", org.Slug)
			}
		}
	})

	t.Run("are read as they were made", func(t *testing.T) {
		t.Parallel()
		org := newOrganization(t, db, "Ünïcode & Söhne")
		if got, err := db.Org(org.ID).Organization(t.Context()); err != nil || got != org {
			t.Errorf("got %+v, %v, want %+v", got, err, org)
		}
		_, err := db.Org(ids.New()).Organization(t.Context())
		wantFault(t, err, fault.PathNotFound)
	})
}

func TestOrganizationsOfAnOwnerAreBounded(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t)
	user, err := tenancy.NewUser(ids.New(), ids.New().String()+"@example.com", "Ann", moment)
	noError(t, err)
	noError(t, store.CreateUser(t.Context(), db, user))
	create := func() error {
		requested, err := tenancy.NewOrganization(ids.New(), uniqueName("many"), moment)
		noError(t, err)
		_, err = db.User(user.ID).CreateOrganization(t.Context(), requested, people.CommandLine(moment))
		return err
	}
	// One that the user does not own does not count.
	exec(t, connect(t, storetest.URL(t)), `INSERT INTO members (org_id, user_id, role, permissions, created_at) VALUES ($1, $2, 'admin', '{}', 0)`,
		newOrganization(t, db, "Of another").ID, user.ID)
	for range people.MaxOwnedOrganizations - 1 {
		noError(t, create())
	}
	var refused atomic.Int64
	atOnce(3, func(int) {
		if err := create(); err != nil {
			wantFault(t, err, fault.InvalidRequest)
			refused.Add(1)
		}
	})
	if refused.Load() != 2 {
		t.Errorf("%d of three at once are refused", refused.Load())
	}
}

func TestApplications(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t)
	org := newOrganization(t, db, "Applications")
	handle := db.Org(org.ID)
	create := func(t *testing.T, name string) tenancy.Application {
		t.Helper()
		requested, err := tenancy.NewApplication(ids.New(), org, name, false, moment)
		noError(t, err)
		app, err := handle.CreateApplication(t.Context(), requested)
		noError(t, err)
		return app
	}
	first, second, other := create(t, "Chat"), create(t, "Chat"), create(t, "Billing")

	t.Run("number their slug within the organization", func(t *testing.T) {
		if first.Slug != "chat" || second.Slug != "chat-2" {
			t.Errorf("they are %s and %s", first.Slug, second.Slug)
		}
	})

	t.Run("are listed by name", func(t *testing.T) {
		list, err := handle.Applications(t.Context())
		noError(t, err)
		if want := []tenancy.Application{other, first, second}; !slices.Equal(list, want) {
			t.Errorf("got %v, want %v", list, want)
		}
	})

	t.Run("have their state from their first moment", func(t *testing.T) {
		noError(t, db.App(first.Scope()).CreateCredit(t.Context(), metering.Credit{ID: ids.New(), Key: "tokens", Name: "Tokens", Unit: "token", Revision: 1, CreatedAt: moment}))
	})

	t.Run("change their name and address, and nothing else", func(t *testing.T) {
		changed, err := first.Change("Talk", "https://talk.example")
		noError(t, err)
		requested := changed
		requested.Slug, requested.Live, requested.CreatedAt = "stolen", true, 0
		noError(t, handle.UpdateApplication(t.Context(), requested))
		if got, err := handle.Application(t.Context(), first.ID); err != nil || got != changed {
			t.Errorf("got %+v, %v, want %+v", got, err, changed)
		}
		bare, err := changed.Change("Talk", "")
		noError(t, err)
		noError(t, handle.UpdateApplication(t.Context(), bare))
		if got, err := handle.Application(t.Context(), first.ID); err != nil || got.DeploymentURL != "" {
			t.Errorf("the address stays: %+v, %v", got, err)
		}
	})

	t.Run("that do not exist are not found", func(t *testing.T) {
		_, err := handle.Application(t.Context(), ids.New())
		wantFault(t, err, fault.PathNotFound)
		wantFault(t, handle.UpdateApplication(t.Context(), tenancy.Application{ID: ids.New(), OrgID: org.ID}), fault.PathNotFound)
	})
}

func TestApplicationsOfAnOrganizationAreBounded(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t)
	org := newOrganization(t, db, "Many")
	create := func() (tenancy.Application, error) {
		requested, err := tenancy.NewApplication(ids.New(), org, "Chat", false, moment)
		noError(t, err)
		return db.Org(org.ID).CreateApplication(t.Context(), requested)
	}
	for range people.MaxApplications - 1 {
		_, err := create()
		noError(t, err)
	}
	var refused atomic.Int64
	atOnce(3, func(int) {
		if app, err := create(); err != nil {
			wantFault(t, err, fault.InvalidRequest)
			refused.Add(1)
		} else if app.Slug != "chat-200" {
			t.Errorf("the last one is %s", app.Slug)
		}
	})
	if refused.Load() != 2 {
		t.Errorf("%d of three at once are refused", refused.Load())
	}
}

func TestProvisionApplication(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t)
	owner := connect(t, storetest.URL(t))
	name := uniqueName("provisioned")
	provision := func(live bool) (tenancy.Application, error) {
		org, err := tenancy.NewOrganization(ids.New(), name, moment)
		noError(t, err)
		app, err := tenancy.NewApplication(ids.New(), org, "Chat", live, moment)
		noError(t, err)
		return db.Directory().ProvisionIn(t.Context(), people.OrgRef{Name: org.Name}, org, app)
	}

	t.Run("makes one of each, however many ask at once", func(t *testing.T) {
		apps := together(t, 12, func(int) (tenancy.Application, error) { return provision(false) })
		for _, app := range apps {
			if app != apps[0] {
				t.Errorf("there are %v and %v", app, apps[0])
			}
		}
		made := texts(t, owner, `SELECT o.id || ' ' || a.id || ' ' || s.app_id FROM organizations o
			JOIN applications a ON a.org_id = o.id JOIN app_state s ON s.app_id = a.id WHERE o.name = $1`, name)
		if len(made) != 1 {
			t.Errorf("made were %v", made)
		}
	})

	t.Run("never goes by a name that people gave", func(t *testing.T) {
		// A member creates an organization with the name that an operator is about to use, and
		// the owners of another one rename theirs to it.
		name := uniqueName("wanted")
		mine := newOrganization(t, db, name)
		noError(t, db.Org(newOrganization(t, db, uniqueName("renamed")).ID).Rename(t.Context(), name))
		org, err := tenancy.NewOrganization(ids.New(), name, moment)
		noError(t, err)
		draft, err := tenancy.NewApplication(ids.New(), org, "Live", true, moment)
		noError(t, err)
		made, err := db.Directory().ProvisionIn(t.Context(), people.OrgRef{Name: org.Name}, org, draft)
		noError(t, err)
		if made.OrgID != org.ID {
			t.Errorf("the application is in %s, not in an organization of its own", made.OrgID)
		}
		// Renamed by its owners, it is found by the name that the command line gave.
		noError(t, db.Org(org.ID).Rename(t.Context(), uniqueName("another")))
		again, err := db.Directory().ProvisionIn(t.Context(), people.OrgRef{Name: org.Name}, org, draft)
		if err != nil || again.ID != made.ID {
			t.Errorf("the second time it is %+v, %v", again, err)
		}
		for _, ref := range []people.OrgRef{{ID: mine.ID}, {Slug: mine.Slug}} {
			draft, err := tenancy.NewApplication(ids.New(), mine, "Chat", false, moment)
			noError(t, err)
			if app, err := db.Directory().ProvisionIn(t.Context(), ref, mine, draft); err != nil || app.OrgID != mine.ID {
				t.Errorf("%s leads to %+v, %v", ref, app, err)
			}
		}
		_, err = db.Directory().ProvisionIn(t.Context(), people.OrgRef{Slug: uniqueName("nowhere")}, org, draft)
		wantFault(t, err, fault.PathNotFound)
	})

	t.Run("keeps live and development apart", func(t *testing.T) {
		development, err := provision(false)
		noError(t, err)
		live, err := provision(true)
		noError(t, err)
		if live.ID == development.ID || live.OrgID != development.OrgID {
			t.Errorf("live is %+v, development %+v", live, development)
		}
	})
}

func TestUsers(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t)
	user, err := tenancy.NewUser(ids.New(), uniqueName("ann")+"@example.com", "Ann", moment)
	noError(t, err)

	t.Run("have an address of their own, also when created at once", func(t *testing.T) {
		errs := make([]error, 8)
		atOnce(len(errs), func(i int) {
			another := user
			another.ID = ids.New()
			errs[i] = store.CreateUser(t.Context(), db, another)
		})
		wantOneWinner(t, errs, fault.AlreadyExists)
	})
}

// together runs something several times at once and gives what came out.
func together[T any](t *testing.T, times int, run func(i int) (T, error)) []T {
	t.Helper()
	results := make([]T, times)
	atOnce(times, func(i int) {
		result, err := run(i)
		if err != nil {
			t.Error(err)
		}
		results[i] = result
	})
	return results
}

// uniqueName is a name that is its own slug and that no other test has.
func uniqueName(beginning string) string {
	id := ids.New().String()
	return beginning + "-" + id[len(id)-12:]
}
