package store_test

import (
	"slices"
	"strconv"
	"testing"

	"purser/billing"
	"purser/fault"
	"purser/ids"
	"purser/metering"
	"purser/store"
	"purser/store/storetest"
)

func TestCredits(t *testing.T) {
	t.Parallel()
	app := newTenant(t, storetest.Open(t))
	credit := app.newCredit(t, "tokens")

	t.Run("are read as they were made", func(t *testing.T) {
		if got, err := app.Credit(t.Context(), "tokens"); err != nil || got != credit {
			t.Errorf("got %+v, %v", got, err)
		}
		_, err := app.Credit(t.Context(), "Tokens") // keys differ by case
		wantFault(t, err, fault.CreditNotFound)
	})

	t.Run("have a key of their own, also when created at once", func(t *testing.T) {
		errs := make([]error, 8)
		atOnce(len(errs), func(i int) {
			errs[i] = app.CreateCredit(t.Context(), metering.Credit{ID: ids.New(), Key: "raced", Name: "Raced", Unit: "token", Revision: 1, CreatedAt: moment})
		})
		wantOneWinner(t, errs, fault.AlreadyExists)
	})

	t.Run("change by one revision, or none when nothing changes", func(t *testing.T) {
		changed, err := app.UpdateCredit(t.Context(), "tokens", metering.CreditPatch{Name: new("Changed")})
		if err != nil || changed.Revision != 2 || changed.Name != "Changed" || changed.Unit != credit.Unit {
			t.Errorf("got %+v, %v", changed, err)
		}
		same, err := app.UpdateCredit(t.Context(), "tokens", metering.CreditPatch{Name: new("Changed"), ExpectedRevision: new(int64(2))})
		if err != nil || same != changed {
			t.Errorf("got %+v, %v", same, err)
		}
		if got, err := app.Credit(t.Context(), "tokens"); err != nil || got != changed {
			t.Errorf("stored is %+v, %v", got, err)
		}
	})

	t.Run("refuse a change of what was read before another's", func(t *testing.T) {
		_, err := app.UpdateCredit(t.Context(), "tokens", metering.CreditPatch{Name: new("Late"), ExpectedRevision: new(int64(1))})
		wantFault(t, err, fault.RevisionConflict)
		_, err = app.UpdateCredit(t.Context(), "missing", metering.CreditPatch{})
		wantFault(t, err, fault.CreditNotFound)
	})

	t.Run("let one of many equal changes through", func(t *testing.T) {
		app.newCredit(t, "contended")
		errs := make([]error, 8)
		atOnce(len(errs), func(i int) {
			_, errs[i] = app.UpdateCredit(t.Context(), "contended",
				metering.CreditPatch{Name: new("By " + strconv.Itoa(i)), ExpectedRevision: new(int64(1))})
		})
		wantOneWinner(t, errs, fault.RevisionConflict)
		if got, err := app.Credit(t.Context(), "contended"); err != nil || got.Revision != 2 {
			t.Errorf("got %+v, %v", got, err)
		}
	})

	t.Run("are listed newest first, and never twice or not at all", func(t *testing.T) {
		app := newTenant(t, storetest.Open(t))
		var want []ids.ID
		for i := range 7 {
			want = append([]ids.ID{app.newCredit(t, numbered("credit", i)).ID}, want...)
		}
		pages(t, want, func(p store.Page) ([]metering.Credit, bool, error) {
			defer app.newCredit(t, ids.New().String())
			return app.Credits(t.Context(), p)
		}, func(c metering.Credit) ids.ID { return c.ID })
	})
}

func TestFeatures(t *testing.T) {
	t.Parallel()
	app := newTenant(t, storetest.Open(t))
	credit, other := app.newCredit(t, "tokens"), app.newCredit(t, "minutes")
	requested := featureOf("messages", "tokens")
	requested.Cost, requested.QuantityPerUnit = metering.MaxAmount, metering.MaxQuantity
	requested.Deduplication = metering.DeduplicateWeek
	feature := app.newFeature(t, requested)

	t.Run("are read as they were made, with their credit", func(t *testing.T) {
		want := requested
		want.CreditID = credit.ID
		if feature != want {
			t.Errorf("made was %+v", feature)
		}
		if got, err := app.Feature(t.Context(), "messages"); err != nil || got != want {
			t.Errorf("got %+v, %v", got, err)
		}
		_, err := app.Feature(t.Context(), "missing")
		wantFault(t, err, fault.FeatureNotFound)
	})

	t.Run("need a credit that exists, and a key of their own", func(t *testing.T) {
		_, err := app.CreateFeature(t.Context(), featureOf("priceless", "missing"))
		wantFault(t, err, fault.CreditNotFound)
		errs := make([]error, 8)
		atOnce(len(errs), func(i int) { _, errs[i] = app.CreateFeature(t.Context(), featureOf("raced", "tokens")) })
		wantOneWinner(t, errs, fault.AlreadyExists)
	})

	t.Run("keep the price of every revision, and name the one in force", func(t *testing.T) {
		app := newTenant(t, storetest.Open(t))
		app.newCredit(t, "tokens")
		app.newCredit(t, "minutes")
		app.newFeature(t, featureOf("messages", "tokens"))
		for _, patch := range []metering.FeaturePatch{
			{Cost: new(metering.Amount(8))},
			{Cost: new(metering.Amount(8))}, // no change, and no revision
			{QuantityPerUnit: new(int64(1000))},
			{PricingMode: new(metering.Callback)},
			{CreditKey: new("minutes")},
		} {
			_, err := app.UpdateFeature(t.Context(), "messages", patch, moment+1)
			noError(t, err)
		}
		prices := texts(t, connect(t, storetest.URL(t)), `
			SELECT concat_ws(' ', p.revision, p.cost_nanocredits, p.quantity_per_unit, p.pricing_mode, c.key, p.created_at - $2,
				CASE WHEN p.number = f.price_number THEN 'in force' END)
			FROM prices p JOIN features f ON f.app_id = p.app_id AND f.id = p.feature_id JOIN credits c ON c.app_id = p.app_id AND c.id = p.credit_id
			WHERE p.app_id = $1 ORDER BY p.number`, app.application.ID, moment)
		want := []string{"1 7 1 fixed tokens 0", "2 8 1 fixed tokens 1", "3 8 1000 fixed tokens 1", "4 8 1000 callback tokens 1", "5 8 1000 callback minutes 1 in force"}
		if !slices.Equal(prices, want) {
			t.Errorf("kept are %q", prices)
		}
	})

	t.Run("tell every node of a change, and of nothing else", func(t *testing.T) {
		before := app.epoch(t)
		_, err := app.UpdateFeature(t.Context(), "messages", metering.FeaturePatch{Name: new("Changed"), CreditKey: new("minutes")}, moment)
		noError(t, err)
		got, err := app.Feature(t.Context(), "messages")
		if err != nil || got.CreditID != other.ID || got.CreditKey != "minutes" || got.Revision != 2 {
			t.Errorf("got %+v, %v", got, err)
		}
		changed := app.epoch(t)
		_, err = app.UpdateFeature(t.Context(), "messages", metering.FeaturePatch{Name: new("Changed")}, moment)
		noError(t, err)
		if after := app.epoch(t); changed <= before || after != changed {
			t.Errorf("the epoch went from %d to %d, and then to %d", before, changed, after)
		}
	})

	t.Run("refuse a change that cannot be made, and stay as they are", func(t *testing.T) {
		before, err := app.Feature(t.Context(), "messages")
		noError(t, err)
		_, err = app.UpdateFeature(t.Context(), "missing", metering.FeaturePatch{}, moment)
		wantFault(t, err, fault.FeatureNotFound)
		_, err = app.UpdateFeature(t.Context(), "messages", metering.FeaturePatch{CreditKey: new("missing")}, moment)
		wantFault(t, err, fault.CreditNotFound)
		_, err = app.UpdateFeature(t.Context(), "messages", metering.FeaturePatch{Name: new("Late"), ExpectedRevision: new(int64(1))}, moment)
		wantFault(t, err, fault.RevisionConflict)
		if got, err := app.Feature(t.Context(), "messages"); err != nil || got != before {
			t.Errorf("got %+v, %v", got, err)
		}
	})

	t.Run("let one of many equal changes through", func(t *testing.T) {
		app.newFeature(t, featureOf("contended", "tokens"))
		errs := make([]error, 8)
		atOnce(len(errs), func(i int) {
			_, errs[i] = app.UpdateFeature(t.Context(), "contended",
				metering.FeaturePatch{Cost: new(metering.Amount(100 + i)), ExpectedRevision: new(int64(1))}, moment)
		})
		wantOneWinner(t, errs, fault.RevisionConflict)
	})

	t.Run("hold to what others rest on", func(t *testing.T) {
		conn := connect(t, storetest.URL(t))
		exec(t, conn, `UPDATE features SET deduplication_locked = true WHERE app_id = $1 AND key = 'messages'`, app.application.ID)
		exec(t, conn, `INSERT INTO feature_references (app_id, org_id, feature_id, holder_id, multiplied)
			SELECT app_id, org_id, id, id, false FROM features WHERE app_id = $1 AND key = 'messages'`, app.application.ID)
		_, err := app.UpdateFeature(t.Context(), "messages", metering.FeaturePatch{Cost: new(metering.Amount(1))}, moment)
		wantFault(t, err, fault.PricingLocked)
		_, err = app.UpdateFeature(t.Context(), "messages", metering.FeaturePatch{Deduplication: new(metering.DeduplicateDay)}, moment)
		wantFault(t, err, fault.DeduplicationLocked)
		got, err := app.UpdateFeature(t.Context(), "messages", metering.FeaturePatch{Name: new("Still")}, moment)
		if err != nil || !got.PlanPricingLocked || !got.DeduplicationLocked {
			t.Errorf("got %+v, %v", got, err)
		}
	})

	t.Run("are listed newest first, and never twice or not at all", func(t *testing.T) {
		app := newTenant(t, storetest.Open(t))
		app.newCredit(t, "tokens")
		var want []ids.ID
		for i := range 6 {
			want = append([]ids.ID{app.newFeature(t, featureOf(numbered("feature", i), "tokens")).ID}, want...)
		}
		pages(t, want, func(p store.Page) ([]metering.Feature, bool, error) {
			defer app.newFeature(t, featureOf(ids.New().String(), "tokens"))
			return app.Features(t.Context(), p)
		}, func(f metering.Feature) ids.ID { return f.ID })
	})
}

// wantOneWinner expects one of several equal attempts to get through, and the
// others to be told why not.
func wantOneWinner(t *testing.T, errs []error, others fault.Code) {
	t.Helper()
	won := 0
	for _, err := range errs {
		if err == nil {
			won++
		} else {
			wantFault(t, err, others)
		}
	}
	if won != 1 {
		t.Errorf("%d of %d got through", won, len(errs))
	}
}

// TestACatalogOfTooManyTermsIsNotRead has plans that take more memory than a comparison may.
func TestACatalogOfTooManyTermsIsNotRead(t *testing.T) {
	t.Parallel()
	s := newStorefront(t, storetest.Open(t))
	add := func(from, to int) {
		storetest.Exec(t, storetest.URL(t), `
			INSERT INTO plans (app_id, id, org_id, key, name, amount_cents, currency, billing_interval, terms, topups_enabled, active, revision, sync_status, sync_version, price_number, created_at)
			SELECT app_id, gen_random_uuid(), org_id, 'large-' || n, name, amount_cents, currency, billing_interval, $2::jsonb || jsonb_build_object('multipliers',
				(SELECT jsonb_agg(jsonb_build_object('featureId', $3::text, 'featureKey', 'messages', 'basisPoints', 10000)) FROM generate_series(1, 100))),
				topups_enabled, active, revision, sync_status, sync_version, price_number, created_at
			FROM plans, generate_series($4::int, $5::int) n WHERE app_id = $1 AND key = 'pro'`, s.application.ID, "{}", s.feature.ID.String(), from, to)
	}
	add(1, billing.MaxCatalogTerms/100-1)
	if state, err := s.Catalog(t.Context()); err != nil || len(state.Plans) != billing.MaxCatalogTerms/100 {
		t.Fatalf("%d plans, %v", len(state.Plans), err)
	}
	add(billing.MaxCatalogTerms/100, billing.MaxCatalogTerms/100)
	_, err := s.Catalog(t.Context())
	wantFault(t, err, fault.CatalogTooLarge)
}
