package store_test

import (
	"crypto/rand"
	"testing"

	"purser/ids"
	"purser/keys"
	"purser/store/reports"
	"purser/store/storetest"
	"purser/tenancy"
)

func TestProgress(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t)
	usage := openUsage(t, db)

	t.Run("is nothing in a new application", func(t *testing.T) {
		if got, err := newTenant(t, db).Reports().Progress(t.Context(), moment); err != nil || got != (reports.Progress{}) {
			t.Errorf("%+v, %v", got, err)
		}
	})
	t.Run("counts a key and nothing of other applications", func(t *testing.T) {
		app := newTenant(t, db)
		app.newKey(t, keys.Setup)
		if got, err := app.Reports().Progress(t.Context(), moment); err != nil || got != (reports.Progress{HasKey: true}) {
			t.Errorf("%+v, %v", got, err)
		}
	})
	t.Run("counts no key that would be refused at the next step", func(t *testing.T) {
		app := newTenant(t, db)
		app.newKey(t, keys.Ingestion)
		app.newKey(t, keys.ReadOnly)
		if got, err := app.Reports().Progress(t.Context(), moment); err != nil || got.HasKey {
			t.Errorf("%+v, %v", got, err)
		}
		spec := keys.Spec{ID: ids.New(), App: app.application, Name: "Short", Preset: keys.Setup, ExpiresAt: moment + 1000}
		key, _, err := keys.New(spec, tenancy.AllPermissions(), moment, rand.Reader)
		noError(t, err)
		noError(t, app.CreateKey(t.Context(), key))
		for now, want := range map[int64]bool{spec.ExpiresAt - 1: true, spec.ExpiresAt: false} {
			if got, err := app.Reports().Progress(t.Context(), now); err != nil || got.HasKey != want {
				t.Errorf("at %d: %+v, %v", now, got, err)
			}
		}
		if _, err := app.RevokeKeys(t.Context(), moment); err != nil {
			t.Fatal(err)
		}
		if got, err := app.Reports().Progress(t.Context(), moment); err != nil || got.HasKey {
			t.Errorf("a revoked key: %+v, %v", got, err)
		}
	})
	t.Run("is whole after the first accepted use", func(t *testing.T) {
		home := newFixture(t, db, usage)
		want := reports.Progress{HasKey: true, HasCredit: true, HasFeature: true, IsFunded: true, IsUsed: true}
		if got, err := home.Reports().Progress(t.Context(), moment); err != nil || got != want {
			t.Errorf("%+v, %v", got, err)
		}
	})
}
