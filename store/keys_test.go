package store_test

import (
	"crypto/rand"
	"errors"
	"strings"
	"testing"

	"purser/fault"
	"purser/ids"
	"purser/keys"
	"purser/store"
	"purser/store/people"
	"purser/store/storetest"
	"purser/tenancy"
	"purser/tenancy/audit"
)

func TestKeys(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t)

	t.Run("are read as they were made", func(t *testing.T) {
		t.Parallel()
		app := newTenant(t, db)
		spec := keys.Spec{
			ID: ids.New(), App: app.application, Name: "Büro", Preset: keys.Custom,
			Custom: tenancy.PermissionsOf(tenancy.EventsIngest, tenancy.WalletsRead), ExpiresAt: moment + 1, CreatedBy: ids.New(),
		}
		key, _, err := keys.New(spec, tenancy.AllPermissions(), moment, rand.Reader)
		noError(t, err)
		noError(t, app.CreateKey(t.Context(), key))
		if got, err := app.Key(t.Context(), key.ID); err != nil || got != key {
			t.Errorf("got %+v, %v, want %+v", got, err, key)
		}
	})

	t.Run("are listed newest first, and never twice or not at all", func(t *testing.T) {
		t.Parallel()
		app := newTenant(t, db)
		var want []ids.ID
		for range 6 {
			key, _ := app.newKey(t, keys.ReadOnly)
			want = append([]ids.ID{key.ID}, want...)
		}
		pages(t, want, func(p store.Page) ([]keys.APIKey, bool, error) {
			defer app.newKey(t, keys.ReadOnly) // someone adds one while we turn the page
			return app.Keys(t.Context(), p)
		}, func(k keys.APIKey) ids.ID { return k.ID })
	})

	t.Run("lead from their hash to their application", func(t *testing.T) {
		t.Parallel()
		app := newTenant(t, db)
		key, secret := app.newKey(t, keys.Ingestion)
		want := people.KeyAddress{Scope: app.application.Scope(), KeyID: key.ID}
		for range 2 { // from the database, then from memory
			if got, err := db.Directory().KeyByHash(t.Context(), secret.Hash()); err != nil || got != want {
				t.Errorf("got %v, %v, want %v", got, err, want)
			}
		}
	})

	t.Run("that nobody made lead nowhere, however often one asks", func(t *testing.T) {
		t.Parallel()
		app := newTenant(t, db)
		spec := keys.Spec{ID: ids.New(), App: app.application, Name: "Later", Preset: keys.Ingestion}
		key, secret, err := keys.New(spec, tenancy.AllPermissions(), moment, rand.Reader)
		noError(t, err)
		for range 2 {
			got, err := db.Directory().KeyByHash(t.Context(), secret.Hash())
			wantFault(t, err, fault.InvalidAPIKey)
			if got != (people.KeyAddress{}) {
				t.Errorf("it leads to %v", got)
			}
		}
		noError(t, app.CreateKey(t.Context(), key))
		if _, err := db.Directory().KeyByHash(t.Context(), secret.Hash()); err != nil {
			t.Errorf("that it was unknown is remembered: %v", err)
		}
	})
}

// TestARemovedMemberMakesNoKey removes the member while their request is under way.
func TestARemovedMemberMakesNoKey(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t)
	app := newTenant(t, db)
	owner, admin := newMember(t, db, app.org, tenancy.Owner), newMember(t, db, app.org, tenancy.Admin)
	request := app.By(audit.Actor{UserID: admin.UserID, Name: "ann@example.com", At: moment})
	key, _, err := keys.New(keys.Spec{ID: ids.New(), App: app.application, Name: "Server", Preset: keys.Setup}, admin.Permissions(), moment, rand.Reader)
	noError(t, err)
	noError(t, orgAs(db, owner).RemoveMember(t.Context(), admin.UserID))
	wantFault(t, request.CreateKey(t.Context(), key), fault.PermissionDenied)
	if _, err := app.Key(t.Context(), key.ID); !fault.Is(err, fault.APIKeyNotFound) {
		t.Errorf("the key was made: %v", err)
	}
}

// TestADemotedMemberMakesNoKey changes what the member may do while their request is under
// way.
func TestADemotedMemberMakesNoKey(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t)
	app := newTenant(t, db)
	owner := newMember(t, db, app.org, tenancy.Owner)
	actor := func(m tenancy.Member) audit.Actor {
		return audit.Actor{UserID: m.UserID, Name: "ann@example.com", At: moment, Access: m.Access}
	}
	create := func(m tenancy.Member) error {
		key, _, err := keys.New(keys.Spec{ID: ids.New(), App: app.application, Name: "Server", Preset: keys.Ingestion}, tenancy.AllPermissions(), moment, rand.Reader)
		noError(t, err)
		return app.By(actor(m)).CreateKey(t.Context(), key)
	}
	writes := tenancy.Access{Role: tenancy.Custom, Custom: tenancy.PermissionsOf(tenancy.KeysWrite, tenancy.WalletsRead)}
	for name, c := range map[string]struct {
		was, is tenancy.Access
		refused bool
	}{
		"an admin becomes support":   {tenancy.Access{Role: tenancy.Admin}, tenancy.Access{Role: tenancy.Support}, true},
		"a permission is taken away": {writes, tenancy.Access{Role: tenancy.Custom, Custom: tenancy.PermissionsOf(tenancy.WalletsRead)}, true},
		"a permission is added":      {writes, tenancy.Access{Role: tenancy.Custom, Custom: writes.Custom.Union(tenancy.PermissionsOf(tenancy.DepositsRead))}, false},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMember(t, db, app.org, tenancy.Support)
			noError(t, orgAs(db, owner).ChangeMember(t.Context(), m.UserID, c.was))
			m.Access = c.was
			noError(t, create(m))
			noError(t, orgAs(db, owner).ChangeMember(t.Context(), m.UserID, c.is))
			if err := create(m); fault.Is(err, fault.PermissionDenied) != c.refused || err != nil && !c.refused {
				t.Errorf("a key: got %v", err)
			}
			if err := db.Org(m.OrgID).By(actor(m)).RequireFactor(t.Context(), c.refused); fault.Is(err, fault.PermissionDenied) != c.refused || err != nil && !c.refused {
				t.Errorf("the authenticator of members: got %v", err)
			}
		})
	}
}

func TestUseKey(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t)
	app := newTenant(t, db)
	key, _ := app.newKey(t, keys.Ingestion)
	lastUse := func() int64 {
		t.Helper()
		got, err := app.Key(t.Context(), key.ID)
		noError(t, err)
		return got.LastUsedAt
	}

	t.Run("notes the last use to the minute, and never an earlier one", func(t *testing.T) {
		for _, c := range []struct{ now, want int64 }{
			{moment, moment},
			{moment + 59_999, moment},
			{moment + 60_000, moment + 60_000},
			{moment + 30_000, moment + 60_000},
			{moment + 120_000, moment + 120_000},
		} {
			_, err := app.UseKey(t.Context(), key.ID, c.now)
			noError(t, err)
			if got := lastUse(); got != c.want {
				t.Errorf("used at %d, it says %d, not %d", c.now, got, c.want)
			}
		}
	})

	t.Run("keeps the later of two uses that were under way together", func(t *testing.T) {
		key, _ := app.newKey(t, keys.Ingestion)
		tx, err := connect(t, storetest.URL(t)).Begin(t.Context())
		noError(t, err)
		exec(t, tx, `SELECT id FROM api_keys WHERE app_id = $1 AND id = $2 FOR UPDATE`, app.application.ID, key.ID)
		// Both have seen a key that was never used, and write in this order.
		ended := make(chan error, 2)
		for waiting, now := range []int64{moment + 120_000, moment} {
			go func() {
				_, err := app.UseKey(t.Context(), key.ID, now)
				ended <- err
			}()
			soon(t, "the use waits for the key", func() bool { return lockWaits(t, storetest.URL(t), "%SET last_used_at%") > waiting })
		}
		noError(t, tx.Rollback(t.Context()))
		noError(t, errors.Join(<-ended, <-ended))
		if got, err := app.Key(t.Context(), key.ID); err != nil || got.LastUsedAt != moment+120_000 {
			t.Errorf("it says %d, %v", got.LastUsedAt, err)
		}
	})

	t.Run("gives the key with what it may do", func(t *testing.T) {
		got, err := app.UseKey(t.Context(), key.ID, moment)
		if err != nil || got.Permissions != key.Permissions || got.Scope != app.application.Scope() {
			t.Errorf("got %+v, %v", got, err)
		}
	})

	t.Run("refuses an unknown, an expired and a revoked key, and notes no use", func(t *testing.T) {
		_, err := app.UseKey(t.Context(), ids.New(), moment)
		wantFault(t, err, fault.InvalidAPIKey)

		spec := keys.Spec{ID: ids.New(), App: app.application, Name: "Short", Preset: keys.Ingestion, ExpiresAt: moment + 10}
		short, _, err := keys.New(spec, tenancy.AllPermissions(), moment, rand.Reader)
		noError(t, err)
		noError(t, app.CreateKey(t.Context(), short))
		_, err = app.UseKey(t.Context(), short.ID, moment+9)
		noError(t, err)
		_, err = app.UseKey(t.Context(), short.ID, moment+10)
		wantFault(t, err, fault.ExpiredAPIKey)

		before := lastUse()
		_, err = app.RevokeKey(t.Context(), key.ID, moment+200_000)
		noError(t, err)
		_, err = app.UseKey(t.Context(), key.ID, moment+200_000)
		wantFault(t, err, fault.RevokedAPIKey)
		if got := lastUse(); got != before {
			t.Errorf("the refused use is noted: %d", got)
		}
	})
}

func TestRevokeKey(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t)
	app := newTenant(t, db)
	key, secret := app.newKey(t, keys.Ingestion)

	before := app.epoch(t)
	revoked, err := app.RevokeKey(t.Context(), key.ID, moment)
	if err != nil || revoked.RevokedAt != moment {
		t.Fatalf("got %+v, %v", revoked, err)
	}
	t.Run("tells every node", func(t *testing.T) {
		if after := app.epoch(t); after <= before {
			t.Errorf("the epoch went from %d to %d", before, after)
		}
	})
	t.Run("keeps the moment of the first time", func(t *testing.T) {
		again, err := app.RevokeKey(t.Context(), key.ID, moment+1)
		if err != nil || again.RevokedAt != moment {
			t.Errorf("got %+v, %v", again, err)
		}
	})
	t.Run("leaves the way to the key, which says why it is refused", func(t *testing.T) {
		address, err := db.Directory().KeyByHash(t.Context(), secret.Hash())
		noError(t, err)
		_, err = app.UseKey(t.Context(), address.KeyID, moment)
		wantFault(t, err, fault.RevokedAPIKey)
	})
}

func TestRotateKey(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t)
	app := newTenant(t, db)
	rotate := func(t *testing.T, id ids.ID, overlap keys.Overlap) (keys.Rotated, error) {
		return app.RotateKey(t.Context(), id, func(old keys.APIKey) (keys.Rotated, error) {
			return keys.Rotate(old, keys.Rotation{ID: ids.New(), Overlap: overlap}, tenancy.AllPermissions(), moment, rand.Reader)
		})
	}
	const hour int64 = 3_600_000

	for overlap, end := range map[keys.Overlap]int64{
		keys.NoOverlap: moment, keys.OneHour: moment + hour, keys.OneDay: moment + 24*hour, keys.OneWeek: moment + 7*24*hour, keys.UntilRevoked: 0,
	} {
		t.Run("lets the old key live for the overlap "+string(overlap), func(t *testing.T) {
			old, _ := app.newKey(t, keys.Setup)
			before := app.epoch(t)
			rotated, err := rotate(t, old.ID, overlap)
			noError(t, err)
			for _, want := range []keys.APIKey{rotated.Old, rotated.New} {
				if got, err := app.Key(t.Context(), want.ID); err != nil || got != want {
					t.Errorf("stored is %+v, %v, not %+v", got, err, want)
				}
			}
			if rotated.Old.RevokedAt != end || rotated.Old.ReplacedBy != rotated.New.ID || rotated.New.Replaces != old.ID {
				t.Errorf("got %+v", rotated)
			}
			if address, err := db.Directory().KeyByHash(t.Context(), rotated.Secret.Hash()); err != nil || address.KeyID != rotated.New.ID {
				t.Errorf("the new secret leads to %v, %v", address, err)
			}
			_, err = app.UseKey(t.Context(), old.ID, moment)
			if overlap == keys.NoOverlap {
				wantFault(t, err, fault.RevokedAPIKey)
			} else {
				noError(t, err)
			}
			if end > moment {
				_, err = app.UseKey(t.Context(), old.ID, end)
				wantFault(t, err, fault.RevokedAPIKey)
			}
			if after := app.epoch(t); after <= before {
				t.Errorf("the epoch went from %d to %d", before, after)
			}
		})
	}

	t.Run("makes one replacement, however many ask at once", func(t *testing.T) {
		old, _ := app.newKey(t, keys.Setup)
		errs := make([]error, 8)
		atOnce(len(errs), func(i int) { _, errs[i] = rotate(t, old.ID, keys.OneDay) })
		wantOneWinner(t, errs, fault.APIKeyNotRotatable)
	})

	t.Run("leaves nothing when the rule refuses", func(t *testing.T) {
		old, _ := app.newKey(t, keys.Setup)
		before, _, err := app.Keys(t.Context(), store.Page{Limit: 100})
		noError(t, err)
		_, err = rotate(t, old.ID, "for ever")
		wantFault(t, err, fault.InvalidRequest)
		if after, _, err := app.Keys(t.Context(), store.Page{Limit: 100}); err != nil || len(after) != len(before) {
			t.Errorf("there are %d keys instead of %d, %v", len(after), len(before), err)
		}
	})
}

// What is stored must not open anything for those who read it.
func TestSecretsAreKeptNowhere(t *testing.T) {
	t.Parallel()
	url := storetest.FreshURL(t)
	owner := connect(t, url)
	app := newTenant(t, openStore(t, url))
	key, secret := app.newKey(t, keys.Setup)

	if columns := texts(t, owner, `SELECT attname::text FROM pg_attribute WHERE attrelid = 'key_directory'::regclass AND attnum > 0 ORDER BY attname`); strings.Join(columns, " ") != "app_id hash key_id org_id" {
		t.Errorf("the directory, which every session may read, tells %v", columns)
	}
	random := secret.Reveal()[len("psr_live_"):]
	random = random[:len(random)-6] // without the checksum, of which the last four are shown
	for _, table := range texts(t, owner, `SELECT tablename::text FROM pg_tables WHERE schemaname = 'public'`) {
		for _, row := range texts(t, owner, `SELECT r::text FROM `+table+` r`) {
			if strings.Contains(row, random) {
				t.Errorf("%s holds the secret: %s", table, row)
			}
		}
	}
	if stored := texts(t, owner, `SELECT encode(hash, 'hex') FROM key_directory WHERE key_id = $1`, key.ID); len(stored) != 1 || strings.Contains(stored[0], random) {
		t.Errorf("stored is %v", stored)
	}
}

// epoch is by what nodes see that what they remember has changed.
func (a tenant) epoch(t *testing.T) (n int64) {
	t.Helper()
	owner := connect(t, storetest.URL(t))
	noError(t, owner.QueryRow(t.Context(), `SELECT epoch FROM app_state WHERE app_id = $1`, a.application.ID).Scan(&n))
	return n
}

// pages turns pages of two until the end, and expects exactly the wanted items.
func pages[T any](t *testing.T, want []ids.ID, list func(store.Page) ([]T, bool, error), id func(T) ids.ID) {
	t.Helper()
	p := store.Page{Limit: 2}
	var got []ids.ID
	for more := true; more; {
		var items []T
		var err error
		items, more, err = list(p)
		noError(t, err)
		if len(items) == 0 || len(items) > p.Limit {
			t.Fatalf("a page has %d items", len(items))
		}
		for _, item := range items {
			got = append(got, id(item))
		}
		p.Before = got[len(got)-1]
	}
	if len(got) != len(want) {
		t.Fatalf("the pages hold %d items, not %d", len(got), len(want))
	}
	for i := range got {
		if got[i] != want[i] {
			t.Errorf("item %d is %s, not %s", i, got[i], want[i])
		}
	}
}
