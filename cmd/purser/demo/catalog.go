package demo

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"purser/metering"
	"purser/tenancy"
)

// The keys of the demo's catalog.
const (
	credits = "credits"
	storage = "storage"

	chat       = "chat"
	image      = "image"
	transcribe = "transcribe"
	export     = "export"
	seat       = "seat"
	agent      = "agent"
	archive    = "archive"

	free       = "free"
	starter    = "starter"
	team       = "team"
	teamYearly = "team-yearly"
	campus     = "campus" // in a currency that the provider does not support
	early      = "early-access"
)

// nano formats whole credits in nanocredits.
func nano(credits int64) string { return strconv.FormatInt(credits, 10) + "000000000" }

// fillCatalog creates the catalog and waits until the provider has it.
func (s *story) fillCatalog(ctx context.Context) {
	for _, made := range []struct {
		path string
		body object
	}{
		{"/v1/credits", object{"key": credits, "name": "Credits", "unit": "credit"}},
		{"/v1/credits", object{"key": storage, "name": "Storage", "unit": "gigabyte-month"}},
		{"/v1/features", object{"key": chat, "name": "Chat", "unit": "token", "creditKey": credits, "costNanocredits": nano(1), "quantityPerUnit": 1000}},
		{"/v1/features", object{"key": image, "name": "Image", "unit": "image", "creditKey": credits, "costNanocredits": nano(4)}},
		{"/v1/features", object{"key": transcribe, "name": "Transcription", "unit": "minute", "creditKey": credits, "costNanocredits": "333333333"}},
		{"/v1/features", object{"key": export, "name": "Export", "unit": "document", "creditKey": credits, "costNanocredits": nano(2), "deduplicationPeriod": "month"}},
		{"/v1/features", object{"key": seat, "name": "Guest seat", "unit": "seat", "creditKey": credits, "costNanocredits": nano(5), "deduplicationPeriod": "billing"}},
		{"/v1/features", object{"key": agent, "name": "Agent run", "unit": "run", "creditKey": credits, "costNanocredits": "0", "pricingMode": "callback"}},
		{"/v1/features", object{"key": archive, "name": "Archive", "unit": "gigabyte", "creditKey": storage, "costNanocredits": nano(1)}},
		{"/v1/plans", plan(free, "Free", 0, "month", 0,
			limit(chat, 20_000, "month", "block"), limit(image, 5, "month", "block"))},
		{"/v1/plans", plan(starter, "Starter", 1900, "month", 60,
			limit(chat, 100_000, "billing", "credits"))},
		{"/v1/plans", plan(team, "Team", 5900, "month", 250,
			limit(chat, 400_000, "billing", "credits"), limit(image, 60, "billing", "credits"))},
		{"/v1/plans", plan(teamYearly, "Team, yearly", 59000, "year", 3000,
			limit(chat, 400_000, "month", "credits"), limit(image, 60, "month", "credits"))},
		{"/v1/plans", plan(early, "Early access", 900, "month", 20, limit(chat, 50_000, "month", "block"))},
	} {
		s.backend.post(ctx, made.path, made.body, nil)
	}
	s.advance(ctx, s.now+time.Minute.Milliseconds())
}

// plan is a plan in dollars that discounts transcriptions.
func plan(key, name string, cents int64, interval string, grant int64, limits ...object) object {
	p := object{
		"key": key, "name": name, "amountCents": cents, "currency": "usd", "interval": interval, "featureLimits": limits,
		"featureMultipliers": []object{{"featureKey": transcribe, "basisPoints": 7500}},
	}
	if grant > 0 {
		p["creditGrants"] = []object{{"creditKey": credits, "amountNanocredits": nano(grant)}}
	}
	return p
}

func limit(feature string, units int64, period, overage string) object {
	return object{"featureKey": feature, "limit": units, "period": period, "overage": overage}
}

// raisePrices changes the catalog at the dashboard and by the API. Existing
// subscriptions keep their terms.
func (s *story) raisePrices(ctx context.Context) {
	s.do(func() error {
		_, err := s.actingAs(tenancy.Developer).UpdateFeature(ctx, archive, metering.FeaturePatch{Cost: new(metering.Amount(1_250_000_000))}, s.now)
		return err
	})
	s.do(func() error {
		_, err := s.actingAs(tenancy.Developer).UpdateCredit(ctx, credits, metering.CreditPatch{Name: new("Studio credits")})
		return err
	})
	s.backend.send(ctx, http.MethodPatch, "/v1/plans/"+starter, object{"amountCents": 2400}, nil, http.StatusOK)
	s.backend.send(ctx, http.MethodPatch, "/v1/plans/"+early, object{"active": false}, nil, http.StatusOK)
}

// describe sets the application's deployment URL.
func (s *story) describe(ctx context.Context) {
	s.do(func() (err error) {
		if s.app, err = s.app.Change(s.app.Name, "https://studio.example"); err != nil {
			return err
		}
		return s.Store.Org(s.org.ID).By(s.actor(tenancy.Admin)).UpdateApplication(ctx, s.app)
	})
}
