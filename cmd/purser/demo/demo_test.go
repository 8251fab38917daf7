package demo_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"purser/cmd/purser/demo"
	"purser/ids"
	"purser/store"
	"purser/store/storetest"
	"purser/tenancy"
)

// broken is a server that does not answer.
type broken struct{}

func (broken) RoundTrip(*http.Request) (*http.Response, error) { return nil, errors.New("no answer") }

func options(t *testing.T) (o demo.Options, url string) {
	t.Helper()
	url = storetest.FreshURL(t)
	db, err := store.Open(t.Context(), url, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return demo.Options{Store: db, BaseURL: "http://purser.test", Transport: broken{}, Now: func() int64 { return time.Now().UnixMilli() }, Begin: func() {}}, url
}

// That it seeds is shown where there is a server to be filled: in cmd/purser.

func TestSeedRefuses(t *testing.T) {
	t.Parallel()
	refused := func(t *testing.T, o demo.Options, says string) {
		t.Helper()
		if made, err := demo.Seed(t.Context(), o); err == nil || !strings.Contains(err.Error(), says) || made.Password != "" {
			t.Errorf("made %+v, %v", made, err)
		}
	}
	t.Run("a database with an organization", func(t *testing.T) {
		t.Parallel()
		o, url := options(t)
		org, err := tenancy.NewOrganization(ids.New(), "Acme", o.Now())
		if err != nil {
			t.Fatal(err)
		}
		storetest.CreateOrganization(t, url, org)
		refused(t, o, "empty database")
	})
	t.Run("a database with an account", func(t *testing.T) {
		t.Parallel()
		o, url := options(t)
		user := tenancy.User{ID: ids.New(), Name: "Ann", Email: "ann@example.com", CreatedAt: o.Now()}
		storetest.CreateUser(t, url, user)
		refused(t, o, "empty database")
		if organizations, err := o.Store.Directory().OrganizationIDs(t.Context()); err != nil || len(organizations) > 0 {
			t.Errorf("it has left %d organizations, %v", len(organizations), err)
		}
	})
	t.Run("to take half of a demo for the whole", func(t *testing.T) {
		t.Parallel()
		o, _ := options(t)
		refused(t, o, "no answer")
		refused(t, o, "interrupted")
	})
}

func TestLongestIsAsLongAsAllowed(t *testing.T) {
	if n := utf8.RuneCountInString(demo.Longest); n != 200 {
		t.Errorf("it has %d characters", n)
	}
}
