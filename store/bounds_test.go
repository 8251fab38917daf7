package store_test

import (
	"crypto/rand"
	"sync/atomic"
	"testing"

	"purser/billing"
	"purser/fault"
	"purser/ids"
	"purser/keys"
	"purser/metering"
	"purser/store/storetest"
	"purser/tenancy"
)

// oneMore runs an insertion three times at once, where there is room for one, and then the
// accepted one again.
func oneMore(t *testing.T, insert func(ids.ID) error) {
	t.Helper()
	var refused atomic.Int64
	created := make(chan ids.ID, 3)
	atOnce(3, func(int) {
		id := ids.New()
		if err := insert(id); err != nil {
			wantFault(t, err, fault.InvalidRequest)
			refused.Add(1)
		} else {
			created <- id
		}
	})
	if refused.Load() != 2 {
		t.Errorf("%d of three at once are refused", refused.Load())
	}
	if len(created) > 0 {
		wantFault(t, insert(<-created), fault.AlreadyExists)
	}
}

func TestCatalogOfAnApplicationIsBounded(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t)
	app := newTenant(t, db)
	app.newCredit(t, "tokens")
	conn := connect(t, storetest.URL(t))

	exec(t, conn, `INSERT INTO credits (app_id, org_id, id, key, name, unit, revision, created_at)
		SELECT app_id, org_id, gen_random_uuid(), 'more-' || n, name, unit, 1, 0 FROM credits CROSS JOIN generate_series(1, $2) n WHERE app_id = $1 AND key = 'tokens'`,
		app.application.ID, billing.MaxItems-2)
	oneMore(t, func(id ids.ID) error {
		return app.CreateCredit(t.Context(), metering.Credit{ID: id, Key: "c-" + id.String(), Name: "Tokens", Unit: "token", Revision: 1, CreatedAt: moment})
	})

	app.newFeature(t, featureOf("chat", "tokens"))
	exec(t, conn, `INSERT INTO features (app_id, org_id, id, key, name, unit, credit_id, cost_nanocredits, quantity_per_unit, pricing_mode, deduplication_period, revision, price_number, created_at)
		SELECT app_id, org_id, gen_random_uuid(), 'more-' || n, name, unit, credit_id, 1, 1, 'fixed', 'none', 1, price_number, 0
		FROM features CROSS JOIN generate_series(1, $2) n WHERE app_id = $1 AND key = 'chat'`, app.application.ID, billing.MaxItems-2)
	oneMore(t, func(id ids.ID) error {
		feature := featureOf("f-"+id.String(), "tokens")
		feature.ID = id
		_, err := app.CreateFeature(t.Context(), feature)
		return err
	})

	plan := func(key string, id ids.ID) error {
		draft := billing.PlanDraft{Key: key, Name: "Pro", Price: billing.Price{AmountCents: 100, Currency: "usd", Interval: billing.Month}}
		_, err := app.CreatePlan(t.Context(), draft, func(c billing.Catalog) (billing.Plan, error) {
			return billing.NewPlan(id, draft, c, moment)
		})
		return err
	}
	noError(t, plan("pro", ids.New()))
	exec(t, conn, `INSERT INTO plans (app_id, org_id, id, key, name, amount_cents, currency, billing_interval, terms, topups_enabled, active, revision, sync_status, sync_version, price_number, created_at)
		SELECT app_id, org_id, gen_random_uuid(), 'more-' || n, name, amount_cents, currency, billing_interval, terms, topups_enabled, active, 1, sync_status, sync_version, price_number, 0
		FROM plans CROSS JOIN generate_series(1, $2) n WHERE app_id = $1 AND key = 'pro'`, app.application.ID, billing.MaxItems-2)
	oneMore(t, func(id ids.ID) error { return plan("p-"+id.String(), id) })

	// Another application has its own.
	newTenant(t, db).newCredit(t, "tokens")
}

func TestKeysOfAnApplicationAreBounded(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t)
	app := newTenant(t, db)
	conn := connect(t, storetest.URL(t))
	first, _ := app.newKey(t, keys.Setup)
	second, _ := app.newKey(t, keys.Setup)
	fill := func(number int, set string) {
		t.Helper()
		exec(t, conn, `INSERT INTO api_keys (app_id, org_id, id, hash, name, preset, permissions, live, last_four, created_at)
			SELECT app_id, org_id, gen_random_uuid(), hash, 'more', preset, permissions, live, last_four, created_at
			FROM api_keys CROSS JOIN generate_series(1, $2) WHERE app_id = $1 AND id = $3`, app.application.ID, number, first.ID)
		exec(t, conn, `UPDATE api_keys SET name = 'filled', `+set+` WHERE app_id = $1 AND name = 'more'`, app.application.ID)
	}
	create := func(id ids.ID) error {
		key, _, err := keys.New(keys.Spec{ID: id, App: app.application, Name: "Server", Preset: keys.Setup}, tenancy.AllPermissions(), moment, rand.Reader)
		noError(t, err)
		return app.CreateKey(t.Context(), key)
	}
	rotate := func(id ids.ID, overlap keys.Overlap) (keys.Rotated, error) {
		return app.RotateKey(t.Context(), id, func(old keys.APIKey) (keys.Rotated, error) {
			return keys.Rotate(old, keys.Rotation{ID: ids.New(), Overlap: overlap}, tenancy.AllPermissions(), moment, rand.Reader)
		})
	}
	// Those that no longer work count for nothing.
	fill(50, "revoked = true")
	fill(50, "expires_at = created_at")
	fill(50, "revoked_at = created_at, replaced_by = id")
	fill(keys.MaxKeys-3, "last_four = 'more'")
	oneMore(t, create)

	// A rotation is none more, with an overlap up to the limit of the replaced keys.
	rotated, err := rotate(first.ID, keys.OneDay)
	noError(t, err)
	wantFault(t, create(ids.New()), fault.InvalidRequest)
	fill(keys.MaxKeys-2, "replaced_by = id")
	rotated, err = rotate(rotated.New.ID, keys.UntilRevoked)
	noError(t, err)
	_, err = rotate(rotated.New.ID, keys.OneHour)
	wantFault(t, err, fault.InvalidRequest)
	if k, err := app.Key(t.Context(), rotated.New.ID); err != nil || k != rotated.New {
		t.Errorf("a refused rotation changed the key: %+v, %v", k, err)
	}
	_, err = rotate(rotated.New.ID, keys.NoOverlap)
	noError(t, err)

	_, err = app.RevokeKey(t.Context(), second.ID, moment)
	noError(t, err)
	noError(t, create(ids.New()))
	wantFault(t, create(ids.New()), fault.InvalidRequest)
	newTenant(t, db).newKey(t, keys.Setup) // another application has its own
}

// Two that are created at once wait for the epoch, so that the second counts the first.
func TestAKeyWaitsForTheOneBefore(t *testing.T) {
	t.Parallel()
	url := storetest.FreshURL(t) // alone, so that only these wait for locks
	app := newTenant(t, openStore(t, url))
	lock, err := connect(t, url).Begin(t.Context())
	noError(t, err)
	exec(t, lock, `SELECT FROM app_state WHERE app_id = $1 FOR NO KEY UPDATE`, app.application.ID)
	created := make(chan error, 1)
	go func() {
		key, _, err := keys.New(keys.Spec{ID: ids.New(), App: app.application, Name: "Server", Preset: keys.Setup}, tenancy.AllPermissions(), moment, rand.Reader)
		if err == nil {
			err = app.CreateKey(t.Context(), key)
		}
		created <- err
	}()
	soon(t, "the key is created or waits", func() bool { return len(created) == 1 || lockWaits(t, url, "%") == 1 })
	if len(created) == 1 {
		t.Error("the key is created without the epoch")
	}
	noError(t, lock.Rollback(t.Context()))
	noError(t, <-created)
}
