package api_test

import (
	"maps"
	"testing"
)

// newFeature is the smallest body that makes a feature.
func newFeature(key string, more fields) fields {
	body := fields{"key": key, "name": "Chat", "unit": "token", "creditKey": "gold", "costNanocredits": "2500"}
	maps.Copy(body, more)
	return body
}

func TestCreateFeature(t *testing.T) {
	t.Parallel()
	tn := newTenant(t)
	tn.credit("gold")

	t.Run("fills in the defaults and shows every field", func(t *testing.T) {
		first := tn.in(t).post("/v1/features", newFeature("plain", nil)).is(201).has(fields{
			"revision": 1, "planPricingLocked": false, "id": idOf("ftr"), "key": "plain", "name": "Chat", "unit": "token",
			"creditKey": "gold", "costNanocredits": "2500", "quantityPerUnit": 1, "pricingMode": "fixed",
			"deduplicationPeriod": "none", "deduplicationLocked": false, "createdAt": recent(tn.node),
		})
		tn.in(t).get("/v1/features/plain").is(200).has(first.object())
	})
	t.Run("takes every field at its bounds", func(t *testing.T) {
		for key, more := range map[string]fields{
			"low":      {"costNanocredits": "0", "quantityPerUnit": 1, "pricingMode": "fixed", "deduplicationPeriod": "none"},
			"high":     {"costNanocredits": "9999999999999999999", "quantityPerUnit": int64(9007199254740991)},
			"callback": {"pricingMode": "callback", "deduplicationPeriod": "day"},
			"week":     {"deduplicationPeriod": "week"},
			"month":    {"deduplicationPeriod": "month"},
			"billing":  {"deduplicationPeriod": "billing"},
		} {
			body := newFeature(key, more)
			tn.in(t).post("/v1/features", body).is(201).shows(body)
			tn.in(t).get("/v1/features/" + key).is(200).shows(body)
		}
	})
	t.Run("keeps any text in name and unit as it was sent", func(t *testing.T) {
		for key, text := range oddTexts {
			body := newFeature("odd-"+key, fields{"name": text, "unit": text})
			tn.in(t).post("/v1/features", body).is(201).shows(body)
		}
	})
	t.Run("refuses a key that is taken", func(t *testing.T) {
		tn.in(t).post("/v1/features", newFeature("taken", nil)).is(201)
		tn.in(t).post("/v1/features", newFeature("taken", fields{"name": "Other"})).refused("already_exists")
	})
	t.Run("refuses a credit that nothing has, and makes nothing", func(t *testing.T) {
		tn.in(t).post("/v1/features", newFeature("lost", fields{"creditKey": "silver"})).refused("credit_not_found")
		tn.in(t).get("/v1/features/lost").refused("feature_not_found")
	})
	t.Run("refuses fields that only an answer has", func(t *testing.T) {
		for _, name := range []string{"id", "revision", "createdAt", "planPricingLocked", "deduplicationLocked", "appId"} {
			tn.in(t).post("/v1/features", newFeature("closed", fields{name: 1})).refused("invalid_request")
		}
	})
}

func TestUpdateFeature(t *testing.T) {
	t.Parallel()
	tn := newTenant(t)
	tn.credit("gold")
	tn.credit("silver")
	fresh := func(t *testing.T, key string) (client, fields) {
		return tn.in(t), tn.post("/v1/features", newFeature(key, nil)).is(201).object()
	}

	t.Run("changes each field alone", func(t *testing.T) {
		c, now := fresh(t, "each")
		for i, change := range []fields{
			{"name": "New"}, {"unit": "u"}, {"creditKey": "silver"}, {"costNanocredits": "9999999999999999999"},
			{"quantityPerUnit": int64(9007199254740991)}, {"pricingMode": "callback"}, {"deduplicationPeriod": "billing"},
		} {
			maps.Copy(now, change)
			now["revision"] = i + 2
			c.patch("/v1/features/each", change).is(200).has(now)
		}
		c.get("/v1/features/each").is(200).has(now)
	})
	t.Run("keeps the revision when nothing changes", func(t *testing.T) {
		c, was := fresh(t, "same")
		for _, name := range []string{"name", "unit", "creditKey", "costNanocredits", "quantityPerUnit", "pricingMode", "deduplicationPeriod"} {
			c.patch("/v1/features/same", fields{name: was[name]}).is(200).has(was)
		}
		c.patch("/v1/features/same", fields{"expectedRevision": 1}).is(200).has(was)
	})
	t.Run("fills in no defaults", func(t *testing.T) {
		c := tn.in(t)
		body := newFeature("kept", fields{"quantityPerUnit": 7, "pricingMode": "callback", "deduplicationPeriod": "week"})
		c.post("/v1/features", body).is(201)
		c.patch("/v1/features/kept", fields{"name": "New"}).is(200).
			shows(fields{"name": "New", "quantityPerUnit": 7, "pricingMode": "callback", "deduplicationPeriod": "week", "revision": 2})
	})
	t.Run("refuses a stale revision and changes nothing", func(t *testing.T) {
		c, was := fresh(t, "stale")
		c.patch("/v1/features/stale", fields{"expectedRevision": 2, "name": "New"}).refused("revision_conflict")
		c.get("/v1/features/stale").is(200).has(was)
		c.patch("/v1/features/stale", fields{"expectedRevision": 1, "name": "New"}).is(200).shows(fields{"revision": 2})
	})
	t.Run("refuses an empty patch and what cannot be patched", func(t *testing.T) {
		c, was := fresh(t, "closed")
		for _, body := range []string{
			`{}`, `{"key":"x"}`, `{"id":"x"}`, `{"revision":2}`, `{"createdAt":1}`, `{"planPricingLocked":true}`, `{"deduplicationLocked":true}`,
			`{"name":"New","stranger":1}`, `{"name":null}`, `{"quantityPerUnit":0}`,
		} {
			c.patch("/v1/features/closed", body).refused("invalid_request")
		}
		c.get("/v1/features/closed").is(200).has(was)
	})
	t.Run("refuses a credit that nothing has, and changes nothing", func(t *testing.T) {
		c, was := fresh(t, "credit")
		c.patch("/v1/features/credit", fields{"name": "New", "creditKey": "bronze"}).refused("credit_not_found")
		c.get("/v1/features/credit").is(200).has(was)
	})
	t.Run("answers 404 for a key that nothing has", func(t *testing.T) {
		tn.in(t).patch("/v1/features/none", fields{"name": "New"}).refused("feature_not_found")
		tn.in(t).get("/v1/features/none").refused("feature_not_found")
	})
}

func TestDeduplicationLock(t *testing.T) {
	t.Parallel()
	tn := newTenant(t)
	tn.credit("gold")
	tn.feature("chat", "gold", fields{"deduplicationPeriod": "day"})
	identity := newHolder()

	tn.use(identity, "chat", nil).refused("insufficient_balance")
	tn.ask(identity, "chat", nil).is(200)
	tn.patch("/v1/features/chat", fields{"deduplicationPeriod": "month"}).is(200).
		shows(fields{"deduplicationLocked": false, "revision": 2}) // neither a refusal nor a check locks
	tn.deposit(identity, "gold", "5000")
	tn.use(identity, "chat", nil).is(201)

	tn.patch("/v1/features/chat", fields{"deduplicationPeriod": "day"}).refused("feature_deduplication_locked")
	tn.patch("/v1/features/chat", fields{"deduplicationPeriod": "none", "name": "New"}).refused("feature_deduplication_locked")
	tn.get("/v1/features/chat").is(200).
		shows(fields{"deduplicationLocked": true, "deduplicationPeriod": "month", "name": "Feature chat", "revision": 2})
	tn.patch("/v1/features/chat", fields{"deduplicationPeriod": "month"}).is(200).shows(fields{"revision": 2})
	tn.patch("/v1/features/chat", fields{"deduplicationPeriod": "month", "costNanocredits": "1"}).is(200).
		shows(fields{"revision": 3, "costNanocredits": "1", "deduplicationLocked": true})
}
