package api_test

import (
	"strings"
	"testing"
)

func TestCreateCredit(t *testing.T) {
	t.Parallel()
	tn := newTenant(t)

	t.Run("shows every field of the new credit", func(t *testing.T) {
		c := tn.in(t)
		made := fields{
			"revision": 1, "id": idOf("crd"), "key": "gold", "name": "Gold coins", "unit": "coin", "createdAt": recent(tn.node),
		}
		first := c.post("/v1/credits", fields{"key": "gold", "name": "Gold coins", "unit": "coin"}).is(201).has(made)
		c.get("/v1/credits/gold").is(200).has(first.object())
	})
	t.Run("keeps any text in name and unit as it was sent", func(t *testing.T) {
		for key, text := range oddTexts {
			body := fields{"key": "odd-" + key, "name": text, "unit": text}
			tn.in(t).post("/v1/credits", body).is(201).shows(body)
			tn.in(t).get("/v1/credits/odd-" + key).is(200).shows(body)
		}
	})
	t.Run("refuses a key that is taken, and changes nothing", func(t *testing.T) {
		c := tn.in(t)
		c.post("/v1/credits", fields{"key": "taken", "name": "First", "unit": "x"}).is(201)
		c.post("/v1/credits", fields{"key": "taken", "name": "Second", "unit": "y"}).refused("already_exists")
		c.get("/v1/credits/taken").is(200).shows(fields{"name": "First", "unit": "x", "revision": 1})
	})
	t.Run("takes keys that another application has", func(t *testing.T) {
		newTenant(t).post("/v1/credits", fields{"key": "gold", "name": "Gold", "unit": "x"}).is(201)
	})
}

// oddTexts are 40 characters at most, the limit of a unit.
var oddTexts = map[string]string{
	"space":     " a  b ",
	"emoji":     strings.Repeat("👩‍🚀", 13),
	"combining": "e\u0301 is not \u00e9",
	"rtl":       "\u202eשלום",
	"markup":    `<b>&"'\/</b>`,
	"control":   "a\u0001\t\n\u007f",
	"private":   "\ue000\ufffd\U0010ffff",
	"sql":       `'; DROP TABLE credits; --`,
	"percent":   "%s %00 %2F",
	"null":      "null",
}

func TestGetCredit(t *testing.T) {
	t.Parallel()
	tn := newTenant(t)
	tn.credit("gold")
	t.Run("answers 404 for a key that nothing has", func(t *testing.T) {
		for _, key := range []string{"silver", "gol", "gold-", "gold2", strings.Repeat("a", 80)} {
			tn.in(t).get("/v1/credits/" + key).refused("credit_not_found")
		}
	})
	t.Run("refuses what is no key", func(t *testing.T) {
		for _, key := range []string{"Gold", "gold%20", "-gold", "_gold", "g%C3%B6ld", "gold%0A", "gold%2F", strings.Repeat("a", 81)} {
			tn.in(t).get("/v1/credits/" + key).refused("invalid_request")
		}
	})
	t.Run("decodes a key that was encoded without need", func(t *testing.T) {
		tn.in(t).get("/v1/credits/%67ol%64").is(200).shows(fields{"key": "gold"})
	})
}

func TestUpdateCredit(t *testing.T) {
	t.Parallel()
	tn := newTenant(t)
	fresh := func(t *testing.T, key string) (client, fields) {
		tn.credit(key)
		return tn.in(t), tn.get("/v1/credits/" + key).is(200).object()
	}
	changed := func(was fields, revision int, more fields) fields {
		now := fields{}
		for name, value := range was {
			now[name] = value
		}
		for name, value := range more {
			now[name] = value
		}
		now["revision"] = revision
		return now
	}

	t.Run("changes what is given and nothing else", func(t *testing.T) {
		c, was := fresh(t, "given")
		c.patch("/v1/credits/given", fields{"name": "New"}).is(200).has(changed(was, 2, fields{"name": "New"}))
		c.patch("/v1/credits/given", fields{"unit": "u"}).is(200).has(changed(was, 3, fields{"name": "New", "unit": "u"}))
		c.patch("/v1/credits/given", fields{"name": "N", "unit": "v"}).is(200).has(changed(was, 4, fields{"name": "N", "unit": "v"}))
		c.get("/v1/credits/given").is(200).has(changed(was, 4, fields{"name": "N", "unit": "v"}))
	})
	t.Run("keeps the revision when nothing changes", func(t *testing.T) {
		c, was := fresh(t, "same")
		for _, body := range []fields{
			{"name": was["name"]}, {"unit": was["unit"]}, {"name": was["name"], "unit": was["unit"]},
			{"expectedRevision": 1}, {"expectedRevision": 1, "name": was["name"]},
		} {
			c.patch("/v1/credits/same", body).is(200).has(was)
		}
	})
	t.Run("refuses a stale revision and changes nothing", func(t *testing.T) {
		c, was := fresh(t, "stale")
		for _, revision := range []int64{2, 9, 9007199254740991, 9223372036854775807} {
			c.patch("/v1/credits/stale", fields{"expectedRevision": revision, "name": "New"}).refused("revision_conflict")
		}
		c.patch("/v1/credits/stale", fields{"expectedRevision": 2}).refused("revision_conflict")
		c.get("/v1/credits/stale").is(200).has(was)
		c.patch("/v1/credits/stale", fields{"expectedRevision": 1, "name": "New"}).is(200).shows(fields{"revision": 2})
		c.patch("/v1/credits/stale", fields{"expectedRevision": 1, "name": "Newer"}).refused("revision_conflict")
	})
	t.Run("refuses an empty patch and what cannot be patched", func(t *testing.T) {
		c, was := fresh(t, "closed")
		for _, body := range []string{
			`{}`, `{"key":"other"}`, `{"name":"New","id":"crd_x"}`, `{"name":"New","revision":1}`, `{"name":"New","createdAt":1}`,
			`{"name":null}`, `{"unit":null}`, `{"expectedRevision":null}`, `{"expectedRevision":0}`, `{"expectedRevision":-1}`, `{"expectedRevision":"1"}`,
		} {
			c.patch("/v1/credits/closed", body).refused("invalid_request")
		}
		c.get("/v1/credits/closed").is(200).has(was)
	})
	t.Run("answers 404 for a key that nothing has", func(t *testing.T) {
		tn.in(t).patch("/v1/credits/none", fields{"name": "New"}).refused("credit_not_found")
		tn.in(t).patch("/v1/credits/none", fields{"name": "New", "expectedRevision": 1}).refused("credit_not_found")
	})
}
