package main

import (
	"strings"
	"testing"
	"time"

	"purser/ids"
	"purser/store"
	"purser/store/storetest"
	"purser/tenancy"
	"purser/tenancy/credential"
)

func TestUsers(t *testing.T) {
	t.Parallel()
	url := storetest.FreshURL(t)
	environ := []string{"DATABASE_URL=" + url, "PURSER_SECRET_KEY=" + strings.Repeat("k", minSecretKey)}
	purser := func(t *testing.T, args ...string) (stdout, stderr string, err error) {
		t.Helper()
		var out, diagnostics strings.Builder
		err = run(t.Context(), args, environ, &out, &diagnostics)
		return out.String(), diagnostics.String(), err
	}
	_, said, err := purser(t, "keys", "create", "--org", "Acme", "--app", "Chat", "--preset", "setup")
	if err != nil || !strings.Contains(said, "purser users own") {
		t.Fatalf("an organization without members is not reported: %q, %v", said, err)
	}
	db, err := store.Open(t.Context(), url, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	user, err := tenancy.NewUser(ids.New(), "ann@example.com", "Ann", time.Now().UnixMilli())
	if err != nil {
		t.Fatal(err)
	}
	storetest.CreateUser(t, url, user)

	t.Run("own an organization that nobody had", func(t *testing.T) {
		if _, _, err := purser(t, "users", "own", "--email", "Ann@example.com", "--org", "Acme"); err != nil {
			t.Fatal(err)
		}
		if out, _, err := purser(t, "users", "own", "--email", "ann@example.com", "--org", "Acme"); err != nil || !strings.Contains(out, "already") {
			t.Errorf("once more it says %q, %v", out, err)
		}
		around, err := db.User(user.ID).PageContext(t.Context(), "acme")
		if err != nil || around.Member.Role != tenancy.Owner {
			t.Errorf("Ann sees %+v, %v", around, err)
		}
		if _, said, err := purser(t, "keys", "create", "--org", "Acme", "--app", "Chat", "--preset", "setup"); err != nil || said != "" {
			t.Errorf("told though there is an owner: %q, %v", said, err)
		}
	})
	t.Run("cannot put an organization of theirs in the place of the operator's", func(t *testing.T) {
		wanted, err := tenancy.NewOrganization(ids.New(), "Globex", time.Now().UnixMilli())
		if err != nil {
			t.Fatal(err)
		}
		wanted = storetest.CreateOrganization(t, url, wanted)
		if out, _, err := purser(t, "users", "own", "--email", "ann@example.com", "--org", "Globex"); err == nil {
			t.Errorf("it is found by the name that people gave: %q", out)
		}
		_, said, err := purser(t, "keys", "create", "--org", "Globex", "--app", "Shop", "--live", "--preset", "setup")
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(said, "Created the organization Globex") || !strings.Contains(said, "\n  "+wanted.ID.Format(ids.Organization)+"\n") {
			t.Errorf("a second organization with the name is created without a note: %q", said)
		}
		if apps, err := db.Org(wanted.ID).Applications(t.Context()); err != nil || len(apps) != 0 {
			t.Errorf("the operator's application is in it: %+v, %v", apps, err)
		}
		for _, ref := range [][]string{{"--org", wanted.ID.Format(ids.Organization)}, {"--org-slug", wanted.Slug}} {
			if _, _, err := purser(t, append([]string{"keys", "create", "--app", "Shop", "--preset", "setup"}, ref...)...); err != nil {
				t.Errorf("%v: %v", ref, err)
			}
		}
		if apps, err := db.Org(wanted.ID).Applications(t.Context()); err != nil || len(apps) != 1 {
			t.Errorf("named by id and by slug it has %+v, %v", apps, err)
		}
		if _, _, err := purser(t, "keys", "create", "--org", "Globex", "--org-slug", "globex", "--app", "Shop", "--preset", "setup"); err == nil {
			t.Error("both flags are taken")
		}
	})
	t.Run("get a password that fits, and is kept as a hash only", func(t *testing.T) {
		out, _, err := purser(t, "users", "reset", "--email", "ann@example.com")
		if err != nil {
			t.Fatal(err)
		}
		words := strings.Fields(out)
		encoded := storetest.Value[string](t, url, `SELECT encoded FROM passwords WHERE user_id = $1`, user.ID)
		right, _, err := credential.Check(words[len(words)-1], encoded)
		if err != nil || !right {
			t.Errorf("what was printed does not fit: %v", err)
		}
	})
	t.Run("are refused when nobody is meant", func(t *testing.T) {
		for _, args := range [][]string{
			{"users"}, {"users", "delete"}, {"users", "reset"}, {"users", "reset", "--email", "bob"}, {"users", "reset", "--email", "bob@example.com"},
			{"users", "own", "--email", "ann@example.com"}, {"users", "own", "--email", "ann@example.com", "--org", "Nobody's"},
		} {
			if out, _, err := purser(t, args...); err == nil || out != "" {
				t.Errorf("purser %v: %q, %v", args, out, err)
			}
		}
	})
}
