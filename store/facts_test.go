package store_test

import (
	"crypto/rand"
	"encoding/hex"
	"maps"
	"strings"
	"testing"

	"purser/billing"
	"purser/fault"
	"purser/ids"
	"purser/keys"
	"purser/metering"
	"purser/notify"
	"purser/store/people"
	"purser/store/storetest"
	"purser/tenancy"
	"purser/tenancy/audit"
)

func TestWhatIsDoneByHandIsWrittenDown(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t)
	app := newTenant(t, db)
	ann := app.By(audit.Actor{UserID: newMember(t, db, app.org, tenancy.Admin).UserID, Name: "ann@example.com", Address: "192.0.2.1", At: moment})
	log := func() []audit.Entry {
		t.Helper()
		list, _, err := db.Org(app.org.ID).AuditLog(t.Context(), people.AuditPage{Limit: 100})
		noError(t, err)
		return list
	}
	// wantAction holds that the last action wrote one entry, of this kind and about this.
	entries := len(log())
	wantAction := func(action, target string, texts ...string) {
		t.Helper()
		list := log()
		if len(list) != entries+1 || list[0].Action != action || list[0].Target != target || list[0].Name != "ann@example.com" {
			t.Fatalf("%d entries more, the last is %+v", len(list)-entries, list[0])
		}
		for _, text := range texts {
			if !strings.Contains(list[0].Before+" → "+list[0].After, text) {
				t.Errorf("%q is not in %s → %s", text, list[0].Before, list[0].After)
			}
		}
		entries = len(list)
	}

	t.Run("a credit that is made, and changed", func(t *testing.T) {
		noError(t, ann.CreateCredit(t.Context(), metering.Credit{ID: ids.New(), Key: "tokens", Name: "Tokens", Unit: "token", Revision: 1, CreatedAt: moment}))
		wantAction("credit.create", "tokens", `"name":"Tokens"`)
		_, err := ann.UpdateCredit(t.Context(), "tokens", metering.CreditPatch{Name: new("Coins")})
		noError(t, err)
		wantAction("credit.update", "tokens", `"name":"Tokens"`, `"name":"Coins"`, `"revision":"2"`)
	})

	t.Run("a feature", func(t *testing.T) {
		_, err := ann.CreateFeature(t.Context(), featureOf("messages", "tokens"))
		noError(t, err)
		wantAction("feature.create", "messages", `"costNanocredits":"7"`, `"creditKey":"tokens"`)
		_, err = ann.UpdateFeature(t.Context(), "messages", metering.FeaturePatch{Cost: new(metering.Amount(9))}, moment)
		noError(t, err)
		wantAction("feature.update", "messages", `"costNanocredits":"7"`, `"costNanocredits":"9"`)
	})

	t.Run("a plan", func(t *testing.T) {
		draft := billing.PlanDraft{
			Key: "pro", Name: "Pro", Price: billing.Price{AmountCents: 2900, Currency: "usd", Interval: billing.Month},
			Limits: []metering.Limit{{FeatureKey: "messages", Limit: 10, Period: metering.LimitMonth, Overage: metering.OverageBlock}},
			Grants: []billing.Grant{{CreditKey: "tokens", Amount: 5}},
		}
		_, err := ann.CreatePlan(t.Context(), draft, func(c billing.Catalog) (billing.Plan, error) {
			return billing.NewPlan(ids.New(), draft, c, moment)
		})
		noError(t, err)
		wantAction("plan.create", "pro", "29.00 USD", "messages 10 month block", "tokens 5")
		_, err = ann.UpdatePlan(t.Context(), "pro", billing.PlanPatch{AmountCents: new(int64(3900))})
		noError(t, err)
		wantAction("plan.update", "pro", "29.00 USD", "39.00 USD")
	})

	t.Run("a key, and never what opens it", func(t *testing.T) {
		spec := keys.Spec{ID: ids.New(), App: app.application, Name: "Server", Preset: keys.Ingestion}
		key, secret, err := keys.New(spec, tenancy.AllPermissions(), moment, rand.Reader)
		noError(t, err)
		noError(t, ann.CreateKey(t.Context(), key))
		target := key.ID.Format(ids.APIKey)
		wantAction("key.create", target, "events:ingest", key.Last4)
		rotated, err := ann.RotateKey(t.Context(), key.ID, func(old keys.APIKey) (keys.Rotated, error) {
			return keys.Rotate(old, keys.Rotation{ID: ids.New(), Overlap: keys.OneHour}, tenancy.AllPermissions(), moment, rand.Reader)
		})
		noError(t, err)
		wantAction("key.rotate", target, rotated.New.ID.Format(ids.APIKey), rotated.New.Last4)
		_, err = ann.RevokeKey(t.Context(), key.ID, moment)
		noError(t, err)
		wantAction("key.revoke", target, `"revoked":"true"`)
		for _, entry := range log() {
			for _, hidden := range []string{secret.Reveal(), rotated.Secret.Reveal(), hex.EncodeToString(key.Hash[:])} {
				if strings.Contains(entry.Before+entry.After, hidden) {
					t.Errorf("%s tells it", entry.Action)
				}
			}
		}
	})

	t.Run("all keys at once", func(t *testing.T) {
		app.newKey(t, keys.Setup)
		revoked, err := ann.RevokeKeys(t.Context(), moment)
		if err != nil || revoked != 2 {
			t.Fatalf("%d keys, %v", revoked, err)
		}
		wantAction("key.revoke-all", app.application.ID.Format(ids.Application), `"keys":"2"`)
	})

	t.Run("but nothing when nothing changes, fails, or no person acts", func(t *testing.T) {
		_, err := ann.UpdateCredit(t.Context(), "tokens", metering.CreditPatch{Name: new("Coins")})
		noError(t, err)
		_, err = ann.UpdateFeature(t.Context(), "messages", metering.FeaturePatch{ExpectedRevision: new(int64(1))}, moment)
		wantFault(t, err, fault.RevisionConflict)
		wantFault(t, ann.CreateCredit(t.Context(), metering.Credit{ID: ids.New(), Key: "tokens", Name: "Again", Unit: "token", Revision: 1, CreatedAt: moment}), fault.AlreadyExists)
		revoked, err := ann.RevokeKeys(t.Context(), moment)
		if err != nil || revoked != 0 {
			t.Errorf("%d keys, %v", revoked, err)
		}
		app.newCredit(t, "by-a-program")
		if list := log(); len(list) != entries {
			t.Errorf("%d entries more", len(list)-entries)
		}
	})
}

func TestRevokeKeys(t *testing.T) {
	t.Parallel()
	app := newTenant(t, storetest.Open(t))
	first, _ := app.newKey(t, keys.Setup)
	before, err := app.RevokeKey(t.Context(), first.ID, moment)
	noError(t, err)
	second, _ := app.newKey(t, keys.Ingestion)
	third, _ := app.newKey(t, keys.Ingestion)
	rotated, err := app.RotateKey(t.Context(), third.ID, func(old keys.APIKey) (keys.Rotated, error) { // the old one ended yesterday
		return keys.Rotate(old, keys.Rotation{ID: ids.New(), Overlap: keys.OneDay}, tenancy.AllPermissions(), moment-2*86_400_000, rand.Reader)
	})
	noError(t, err)
	expired, _ := app.newKey(t, keys.Ingestion)
	exec(t, connect(t, storetest.URL(t)), `UPDATE api_keys SET expires_at = $3 WHERE app_id = $1 AND id = $2`, app.application.ID, expired.ID, moment-1)
	revoked, err := app.RevokeKeys(t.Context(), moment+5)
	if err != nil || revoked != 2 {
		t.Fatalf("%d keys, %v", revoked, err)
	}

	t.Run("announces what it stops, and nothing that had ended", func(t *testing.T) {
		types, data := app.notifications(t)
		got := map[any]any{}
		for i := range types {
			if types[i] == notify.KeyRevoked {
				got[data[i]["id"]] = data[i]["revokedAt"]
			}
		}
		want := map[any]any{
			first.ID.Format(ids.APIKey): float64(moment), second.ID.Format(ids.APIKey): float64(moment + 5), rotated.New.ID.Format(ids.APIKey): float64(moment + 5),
		}
		if !maps.Equal(got, want) {
			t.Errorf("announced %v, want %v", got, want)
		}
		if old, err := app.Key(t.Context(), third.ID); err != nil || !old.Revoked || old.RevokedAt != rotated.Old.RevokedAt {
			t.Errorf("it is %+v, %v", old, err)
		}
	})

	t.Run("stops what worked", func(t *testing.T) {
		_, err := app.UseKey(t.Context(), second.ID, moment)
		wantFault(t, err, fault.RevokedAPIKey)
		if got, err := app.Key(t.Context(), second.ID); err != nil || got.RevokedAt != moment+5 {
			t.Errorf("it is %+v, %v", got, err)
		}
	})

	t.Run("revokes also what had expired", func(t *testing.T) {
		if old, err := app.Key(t.Context(), expired.ID); err != nil || !old.Revoked {
			t.Errorf("it is %+v, %v", old, err)
		}
	})

	t.Run("leaves what was revoked as it was", func(t *testing.T) {
		if got, err := app.Key(t.Context(), first.ID); err != nil || got != before {
			t.Errorf("it is %+v, %v", got, err)
		}
	})
}

// TestRevokingAllKeysLeavesNoneThatIsMadeMeanwhile rotates and creates keys while their
// revocation waits for one of them.
func TestRevokingAllKeysLeavesNoneThatIsMadeMeanwhile(t *testing.T) {
	t.Parallel()
	url := storetest.FreshURL(t)
	app := newTenant(t, openStore(t, url))
	rotated, _ := app.newKey(t, keys.Setup)
	rival := connect(t, url)
	for _, overlap := range []keys.Overlap{keys.NoOverlap, keys.OneDay} {
		held, err := rival.Begin(t.Context())
		noError(t, err)
		exec(t, held, `SELECT FROM api_keys WHERE app_id = $1 AND id = $2 FOR UPDATE`, app.application.ID, rotated.ID)
		var replacement keys.Rotated
		rotation := make(chan error, 1)
		go func() {
			var err error
			replacement, err = app.RotateKey(t.Context(), rotated.ID, func(old keys.APIKey) (keys.Rotated, error) {
				return keys.Rotate(old, keys.Rotation{ID: ids.New(), Overlap: overlap}, tenancy.AllPermissions(), moment, rand.Reader)
			})
			rotation <- err
		}()
		soon(t, "the rotation waits for its key", func() bool { return lockWaits(t, url, "%") == 1 })
		revocation := make(chan error, 1)
		go func() {
			_, err := app.RevokeKeys(t.Context(), moment+1)
			revocation <- err
		}()
		soon(t, "the revocation waits, too", func() bool { return lockWaits(t, url, "%") == 2 })
		created, _ := app.newKey(t, keys.Ingestion)
		noError(t, held.Commit(t.Context()))
		noError(t, <-rotation)
		noError(t, <-revocation)
		for _, id := range []ids.ID{rotated.ID, replacement.New.ID, created.ID} {
			if k, err := app.Key(t.Context(), id); err != nil || k.Usable(moment+2) == nil {
				t.Errorf("with the overlap %v, a key works: %+v, %v", overlap, k, err)
			}
		}
		rotated, _ = app.newKey(t, keys.Setup)
	}
}

func TestAKeyIsMadeOnce(t *testing.T) {
	t.Parallel()
	app := newTenant(t, storetest.Open(t))
	errs, id := make([]error, 4), ids.New()
	atOnce(len(errs), func(i int) {
		spec := keys.Spec{ID: id, App: app.application, Name: "Server", Preset: keys.Ingestion}
		key, _, err := keys.New(spec, tenancy.AllPermissions(), moment, rand.Reader)
		if errs[i] = err; err == nil {
			errs[i] = app.CreateKey(t.Context(), key)
		}
	})
	wantOneWinner(t, errs, fault.AlreadyExists)
}
