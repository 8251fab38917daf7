package store_test

import (
	"testing"

	"purser/keys"
	"purser/store"
	"purser/store/storetest"
)

func TestProgress(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t)
	usage := openUsage(t, db)

	t.Run("is nothing in a new application", func(t *testing.T) {
		if got, err := newTenant(t, db).Progress(t.Context()); err != nil || got != (store.Progress{}) {
			t.Errorf("%+v, %v", got, err)
		}
	})
	t.Run("counts a key and nothing of other applications", func(t *testing.T) {
		app := newTenant(t, db)
		app.newKey(t, keys.Setup)
		if got, err := app.Progress(t.Context()); err != nil || got != (store.Progress{HasKey: true}) {
			t.Errorf("%+v, %v", got, err)
		}
	})
	t.Run("is whole after the first accepted use", func(t *testing.T) {
		home := newHousehold(t, db, usage)
		want := store.Progress{HasKey: true, HasCredit: true, HasFeature: true, IsFunded: true, IsUsed: true}
		if got, err := home.Progress(t.Context()); err != nil || got != want {
			t.Errorf("%+v, %v", got, err)
		}
	})
}
