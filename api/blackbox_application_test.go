package api_test

import (
	"testing"

	"purser/ids"
	"purser/keys"
	"purser/tenancy"
)

func TestApplication(t *testing.T) {
	t.Parallel()
	tn := newTenant(t)
	org, err := tn.node.store.Org(tn.app.OrgID).Organization(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	shown := fields{
		"orgId": tn.app.OrgID.Format(ids.Organization), "orgSlug": org.Slug, "appId": tn.app.ID.Format(ids.Application),
		"name": tn.app.Name, "isLive": false, "permissions": anyList(tenancy.APIPermissions().Names()),
	}

	t.Run("says what the key belongs to", func(t *testing.T) {
		tn.in(t).get("/v1/application").is(200).has(shown)
	})
	t.Run("lists what this key may do and no more", func(t *testing.T) {
		key := tn.newKey(keys.Spec{Preset: keys.ReadOnly})
		tn.in(t).with(key.secret).get("/v1/application").is(200).
			shows(fields{"permissions": anyList(tenancy.ReadPermissions().Names())})
	})
	t.Run("shows the deployment address once there is one", func(t *testing.T) {
		other := newTenant(t)
		changed, err := other.app.Change("Chat ✓", "https://chat.example.com/a?b=c")
		if err != nil {
			t.Fatal(err)
		}
		if err := other.node.store.Org(other.app.OrgID).UpdateApplication(t.Context(), changed); err != nil {
			t.Fatal(err)
		}
		other.get("/v1/application").is(200).
			shows(fields{"name": "Chat ✓", "deploymentUrl": "https://chat.example.com/a?b=c"})
	})
	t.Run("tells a live application from one for development", func(t *testing.T) {
		live := newTenantAt(t, tn.node, org.Name, true)
		live.get("/v1/application").is(200).shows(fields{"isLive": true, "orgId": shown["orgId"]})
	})
	t.Run("takes no other application from the query", func(t *testing.T) {
		for _, query := range []string{"appId=" + tn.app.ID.Format(ids.Application), "orgId=x", "limit=1", "="} {
			tn.in(t).get("/v1/application?" + query).refused("invalid_request")
		}
	})
}

func TestSameIdentityInTwoApplications(t *testing.T) {
	t.Parallel()
	development := newTenant(t)
	org, err := development.node.store.Org(development.app.OrgID).Organization(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	live := newTenantAt(t, development.node, org.Name, true)
	identity, event, deposit := newHolder(), newName(), newName()
	for amount, tn := range map[string]*tenant{"7000": development, "90000": live} {
		tn.credit("gold")
		tn.feature("chat", "gold", nil)
		tn.post("/v1/deposits", fields{
			"identity": identity, "creditKey": "gold", "amountNanocredits": amount, "idempotencyKey": deposit,
		}).is(201).shows(fields{"duplicate": false})
	}
	development.post("/v1/events", fields{"id": event, "identity": identity, "feature": "chat"}).is(201)
	live.post("/v1/events", fields{"id": event, "identity": identity, "feature": "chat", "quantity": 2}).is(201)
	if balance := development.balance(identity, "gold"); balance != "6000" {
		t.Errorf("the development wallet holds %s", balance)
	}
	if balance := live.balance(identity, "gold"); balance != "88000" {
		t.Errorf("the live wallet holds %s", balance)
	}
}

func TestOpenapi(t *testing.T) {
	t.Parallel()
	tn := newTenant(t)
	for name, key := range map[string]string{
		"needs no key": "", "does not mind a key": tn.key, "does not mind a wrong key": "psr_test_x",
	} {
		t.Run(name, func(t *testing.T) {
			tn.in(t).with(key).get("/v1/openapi.json").is(200)
		})
	}
	t.Run("states the version of the interface", func(t *testing.T) {
		document := tn.in(t).get("/v1/openapi.json").is(200).object()
		if version := document["info"].(fields)["version"]; version != "1.0.0" {
			t.Errorf("the version is %v", version)
		}
		if version := document["openapi"]; version != "3.1.0" {
			t.Errorf("OpenAPI is %v", version)
		}
	})
}

func anyList(texts []string) []any {
	list := make([]any, len(texts))
	for i, text := range texts {
		list[i] = text
	}
	return list
}
