package billing

import (
	"reflect"
	"strings"
	"testing"

	"purser/fault"
	"purser/metering"
)

var shelf = Catalog{
	Features: map[string]metering.Feature{
		"calls":  {ID: named("calls"), Key: "calls", PricingMode: metering.Fixed},
		"quoted": {ID: named("quoted"), Key: "quoted", PricingMode: metering.Callback},
	},
	Credits: map[string]metering.Credit{"tokens": {ID: named("tokens"), Key: "tokens"}},
}

func draft() PlanDraft {
	return PlanDraft{
		Key: "pro", Name: "Pro", Price: Price{2900, "usd", Month},
		Limits:        []metering.Limit{{FeatureKey: "calls", Limit: 10, Period: metering.LimitMonth, Overage: metering.OverageBlock}},
		Grants:        []Grant{{CreditKey: "tokens", Amount: 5}},
		Multipliers:   []metering.Multiplier{{FeatureKey: "calls", BasisPoints: 5000}},
		TopupsEnabled: true, Active: true,
	}
}

func TestNewPlan(t *testing.T) {
	t.Run("waits for the provider and has its ids from the catalog", func(t *testing.T) {
		p, err := NewPlan(named("pro"), draft(), shelf, 7)
		if err != nil {
			t.Fatal(err)
		}
		if p.Sync.Status != SyncPending || p.Revision != 1 || p.CreatedAt != 7 {
			t.Errorf("got %+v", p)
		}
		if p.Limits[0].FeatureID != named("calls") || p.Multipliers[0].FeatureID != named("calls") || p.Grants[0].CreditID != named("tokens") {
			t.Errorf("an id is missing: %+v", p)
		}
	})
	t.Run("leaves the draft alone", func(t *testing.T) {
		d := draft()
		if _, err := NewPlan(named("pro"), d, shelf, 7); err != nil || !reflect.DeepEqual(d, draft()) {
			t.Errorf("the draft became %+v, %v", d, err)
		}
	})
	for _, c := range []struct {
		claim  string
		change func(*PlanDraft)
		want   fault.Code
		names  string
	}{
		{"a feature limited twice", func(d *PlanDraft) { d.Limits = append(d.Limits, d.Limits[0]) }, fault.InvalidRequest, `"calls"`},
		{"a feature multiplied twice", func(d *PlanDraft) { d.Multipliers = append(d.Multipliers, d.Multipliers[0]) }, fault.InvalidRequest, `"calls"`},
		{"a credit granted twice", func(d *PlanDraft) { d.Grants = append(d.Grants, d.Grants[0]) }, fault.InvalidRequest, `"tokens"`},
		{"an unknown feature in a limit", func(d *PlanDraft) { d.Limits[0].FeatureKey = "nope" }, fault.FeatureNotFound, `"nope"`},
		{"an unknown feature in a multiplier", func(d *PlanDraft) { d.Multipliers[0].FeatureKey = "nope" }, fault.FeatureNotFound, `"nope"`},
		{"an unknown credit", func(d *PlanDraft) { d.Grants[0].CreditKey = "nope" }, fault.CreditNotFound, `"nope"`},
		{"a multiplier of a callback feature", func(d *PlanDraft) { d.Multipliers[0].FeatureKey = "quoted" }, fault.CallbackMultiplier, `"quoted"`},
		{"an amount below the smallest charge", func(d *PlanDraft) { d.AmountCents = 30 }, fault.AmountTooSmall, "0.50 USD"},
		{"an amount in steps too small", func(d *PlanDraft) { d.Price = Price{1001, "kwd", Month} }, fault.AmountNotChargeable, "10"},
		{"a list that is wrong in itself before what it names", func(d *PlanDraft) {
			d.Limits[0].FeatureKey = "nope"
			d.Grants = append(d.Grants, d.Grants[0])
		}, fault.InvalidRequest, `"tokens"`},
	} {
		t.Run("refuses "+c.claim, func(t *testing.T) {
			d := draft()
			c.change(&d)
			_, err := NewPlan(named("pro"), d, shelf, 7)
			wantFault(t, err, c.want)
			if err != nil && !strings.Contains(err.Error(), c.names) {
				t.Errorf("%q does not say %s", err, c.names)
			}
		})
	}
	for claim, change := range map[string]func(*PlanDraft){
		"costs nothing":             func(d *PlanDraft) { d.AmountCents = 0 },
		"limits a callback feature": func(d *PlanDraft) { d.Limits[0].FeatureKey = "quoted" },
		"has no lists":              func(d *PlanDraft) { d.Limits, d.Grants, d.Multipliers = nil, nil, nil },
	} {
		t.Run("takes one that "+claim, func(t *testing.T) {
			d := draft()
			change(&d)
			_, err := NewPlan(named("pro"), d, shelf, 7)
			wantFault(t, err, "")
		})
	}
}

func TestPatchPlan(t *testing.T) {
	was, err := NewPlan(named("pro"), draft(), shelf, 7)
	if err != nil {
		t.Fatal(err)
	}
	was = was.Synced(was.Sync, "prod_1", "price_1")
	if was.Sync.Status != SyncDone {
		t.Fatalf("got %+v", was.Sync)
	}
	name, cents, same, currency, yearly, no := "Max", int64(3900), int64(2900), "eur", Year, false
	limits := []metering.Limit{{FeatureKey: "calls", Limit: 11, Period: metering.LimitMonth, Overage: metering.OverageBlock}}
	grants, multipliers := []Grant{{CreditKey: "tokens", Amount: 6}}, []metering.Multiplier{}

	for _, c := range []struct {
		claim             string
		patch             PlanPatch
		changes           bool
		pending, newPrice bool
	}{
		{"nothing", PlanPatch{}, false, false, false},
		{"what it is already", PlanPatch{AmountCents: &same, Name: &was.Name, Limits: &was.Limits}, false, false, false},
		{"the name", PlanPatch{Name: &name}, true, true, false},
		{"whether it is active", PlanPatch{Active: &no}, true, true, false},
		{"the amount", PlanPatch{AmountCents: &cents}, true, true, true},
		{"the currency", PlanPatch{Currency: &currency}, true, true, true},
		{"the interval", PlanPatch{Interval: &yearly}, true, true, true},
		{"the limits", PlanPatch{Limits: &limits}, true, false, false},
		{"the grants", PlanPatch{Grants: &grants}, true, false, false},
		{"the multipliers", PlanPatch{Multipliers: &multipliers}, true, false, false},
		{"whether top-ups are enabled", PlanPatch{TopupsEnabled: &no}, true, false, false},
	} {
		t.Run(c.claim, func(t *testing.T) {
			updated, err := was.Patch(c.patch, shelf)
			if err != nil {
				t.Fatal(err)
			}
			if grew := updated.Revision == was.Revision+1; grew != c.changes || !c.changes && updated.Revision != was.Revision {
				t.Errorf("the revision went from %d to %d", was.Revision, updated.Revision)
			}
			if pending := updated.Sync.Status == SyncPending; pending != c.pending {
				t.Errorf("the provider's part is %s", updated.Sync.Status)
			}
			if fresh := updated.Sync.PriceID == "" && updated.PriceReference() != was.PriceReference(); fresh != c.newPrice {
				t.Errorf("the price is %q under %s", updated.Sync.PriceID, updated.PriceReference())
			}
			if updated.Sync.ProductID != "prod_1" || updated.ProductReference() != was.ProductReference() {
				t.Errorf("the product changed to %q", updated.Sync.ProductID)
			}
		})
	}
	t.Run("is refused on another revision than expected", func(t *testing.T) {
		stale := was.Revision + 1
		_, err := was.Patch(PlanPatch{ExpectedRevision: &stale, Name: &name}, shelf)
		wantFault(t, err, fault.RevisionConflict)
	})
	t.Run("is refused for a list that names something twice", func(t *testing.T) {
		twice := append(limits, limits...)
		updated, err := was.Patch(PlanPatch{Limits: &twice}, shelf)
		wantFault(t, err, fault.InvalidRequest)
		if !reflect.DeepEqual(updated, was) {
			t.Error("the plan changed")
		}
	})
	t.Run("is refused for an amount that the new currency cannot charge", func(t *testing.T) {
		forint := "huf"
		updated, err := was.Patch(PlanPatch{Currency: &forint}, shelf)
		wantFault(t, err, fault.AmountTooSmall)
		if !reflect.DeepEqual(updated, was) {
			t.Error("the plan changed")
		}
	})
}

func TestSync(t *testing.T) {
	fresh, err := NewPlan(named("pro"), draft(), shelf, 7)
	if err != nil {
		t.Fatal(err)
	}
	cents, limits := int64(3900), []metering.Limit{}

	t.Run("an error is stored, and cleared by a success", func(t *testing.T) {
		failed := fresh.SyncRefused(fresh.Sync, "No such thing.")
		if failed.Sync.Status != SyncFailed || failed.Sync.Error != "No such thing." || failed.Revision != fresh.Revision {
			t.Fatalf("got %+v", failed.Sync)
		}
		if done := failed.Synced(failed.Sync, "prod_1", "price_1"); done.Sync.Status != SyncDone || done.Sync.Error != "" {
			t.Errorf("got %+v", done.Sync)
		}
	})
	t.Run("work for an older price settles neither price nor status", func(t *testing.T) {
		costsMore, err := fresh.Patch(PlanPatch{AmountCents: &cents}, shelf)
		if err != nil {
			t.Fatal(err)
		}
		late := costsMore.Synced(fresh.Sync, "prod_1", "price_old")
		if late.Sync.Status != SyncPending || late.Sync.PriceID != "" || late.Sync.ProductID != "prod_1" {
			t.Errorf("got %+v", late.Sync)
		}
		if got := costsMore.SyncRefused(fresh.Sync, "late"); got.Sync != costsMore.Sync {
			t.Errorf("got %+v", got.Sync)
		}
	})
	t.Run("work goes through that began before a change the provider need not know", func(t *testing.T) {
		roomier, err := fresh.Patch(PlanPatch{Limits: &limits}, shelf)
		if err != nil {
			t.Fatal(err)
		}
		if done := roomier.Synced(fresh.Sync, "prod_1", "price_1"); done.Sync.Status != SyncDone {
			t.Errorf("got %+v", done.Sync)
		}
	})
}

func TestTermsAreFrozen(t *testing.T) {
	p, err := NewPlan(named("pro"), draft(), shelf, 7)
	if err != nil {
		t.Fatal(err)
	}
	terms := p.Synced(p.Sync, "prod_1", "price_1").Terms()
	p.Limits[0].Limit, p.Grants[0].Amount, p.Multipliers[0].BasisPoints = 99, 99, 99
	if terms.Limits[0].Limit != 10 || terms.Grants[0].Amount != 5 || terms.Multipliers[0].BasisPoints != 5000 {
		t.Errorf("the plan reached into the terms: %+v", terms)
	}
	if terms.PlanID != p.ID || terms.PlanKey != "pro" || terms.Price != p.Price || terms.PriceID != "price_1" || !terms.TopupsEnabled {
		t.Errorf("got %+v", terms)
	}
	engine := terms.Metering()
	if limit, found := engine.Limit(named("calls")); !found || limit.Limit != 10 || engine.BasisPoints(named("calls")) != 5000 {
		t.Errorf("the engine sees %+v", engine)
	}
}

func TestAPlanNeedsACurrencyThatExists(t *testing.T) {
	for currency, known := range map[string]bool{"usd": true, "zmw": true, "xts": false, "xxx": false, "xau": false, "aaa": false} {
		for _, cents := range []int64{0, 2900} {
			plan, err := NewPlan(named("plan"), PlanDraft{Key: "plan", Name: "Plan", Price: Price{cents, currency, Month}}, Catalog{}, 1)
			if fault.Is(err, fault.InvalidRequest) == known || known && err != nil {
				t.Errorf("%d %s: %v", cents, currency, err)
			}
			if known {
				aaa := "aaa"
				if _, err := plan.Patch(PlanPatch{Currency: &aaa}, Catalog{}); !fault.Is(err, fault.InvalidRequest) {
					t.Errorf("a patch to %s: %v", aaa, err)
				}
			}
		}
	}
}
