package api_test

import (
	"crypto/rand"
	"fmt"
	"net/url"
	"testing"
	"time"

	"purser/ids"
	"purser/keys"
	"purser/store/people"
	"purser/tenancy"
)

// tenant is an application of its own for one test, and a caller that may do
// everything in it.
type tenant struct {
	client
	app tenancy.Application
}

// newTenant makes an organization with one application, at the shared node.
func newTenant(t testing.TB) *tenant {
	t.Helper()
	return newTenantAt(t, sharedNode(t), "Org "+ids.New().String(), false)
}

// newTenantAt finds or makes the organization of that name, and makes an
// application in it.
func newTenantAt(t testing.TB, n *node, orgName string, live bool) *tenant {
	t.Helper()
	now := time.Now().UnixMilli()
	org, err := tenancy.NewOrganization(ids.New(), orgName, now)
	if err != nil {
		t.Fatal(err)
	}
	app, err := tenancy.NewApplication(ids.New(), org, "App "+ids.New().String(), live, now)
	if err != nil {
		t.Fatal(err)
	}
	if app, err = n.store.Directory().ProvisionIn(t.Context(), people.OrgRef{Name: org.Name}, org, app); err != nil {
		t.Fatal(err)
	}
	made := &tenant{client: client{t: t, node: n}, app: app}
	made.key = made.newKey(keys.Spec{Preset: keys.Setup}).secret
	return made
}

// madeKey is a key whose secret is still known.
type madeKey struct {
	keys.APIKey
	secret string
}

// newKey makes a key of the application. A key with an expiry that is over was
// made long before it.
func (tn *tenant) newKey(spec keys.Spec) madeKey {
	tn.t.Helper()
	if spec.ID.IsZero() {
		spec.ID = ids.New()
	}
	spec.App, spec.Name = tn.app, "a key of the suite"
	made := time.Now().Add(-240 * time.Hour).UnixMilli()
	key, secret, err := keys.New(spec, tenancy.AllPermissions(), made, rand.Reader)
	if err != nil {
		tn.t.Fatal(err)
	}
	if err := tn.node.store.App(key.Scope).CreateKey(tn.t.Context(), key); err != nil {
		tn.t.Fatal(err)
	}
	return madeKey{key, secret.Reveal()}
}

func (tn *tenant) revoke(key madeKey) {
	tn.t.Helper()
	if _, err := tn.node.store.App(key.Scope).RevokeKey(tn.t.Context(), key.ID, tn.node.clock.now()); err != nil {
		tn.t.Fatal(err)
	}
}

func mintSecret(t testing.TB) keys.Secret {
	t.Helper()
	secret, err := keys.Mint(rand.Reader, false)
	if err != nil {
		t.Fatal(err)
	}
	return secret
}

// newHolder makes an identity up.
func newHolder() string { return holderMark + ids.New().String() }

// newName makes up what is unique in an application: an event id or an
// idempotency key.
func newName() string { return ids.New().String() }

// The catalog of a test, made through the interface as a caller would.

func (tn *tenant) credit(key string) {
	tn.t.Helper()
	tn.post("/v1/credits", fields{"key": key, "name": "Credit " + key, "unit": "token"}).is(201)
}

// feature makes a feature that costs 1000 of the credit, unless more says so.
func (tn *tenant) feature(key, credit string, more fields) {
	tn.t.Helper()
	body := fields{"key": key, "name": "Feature " + key, "unit": "call", "creditKey": credit, "costNanocredits": "1000"}
	for name, value := range more {
		body[name] = value
	}
	tn.post("/v1/features", body).is(201)
}

func (tn *tenant) deposit(identity, credit, amount string) answer {
	tn.t.Helper()
	return tn.post("/v1/deposits", fields{
		"identity": identity, "creditKey": credit, "amountNanocredits": amount, "idempotencyKey": newName(),
	}).is(201)
}

// use tracks a use with a new event id.
func (tn *tenant) use(identity, feature string, more fields) answer {
	tn.t.Helper()
	body := fields{"id": newName(), "identity": identity, "feature": feature}
	for name, value := range more {
		body[name] = value
	}
	return tn.post("/v1/events", body)
}

func (tn *tenant) ask(identity, feature string, more fields) answer {
	tn.t.Helper()
	body := fields{"identity": identity, "feature": feature}
	for name, value := range more {
		body[name] = value
	}
	return tn.post("/v1/check", body)
}

// balance is what the wallet shows of a credit.
func (tn *tenant) balance(identity, credit string) string {
	tn.t.Helper()
	for _, item := range tn.get(walletPath(identity)).is(200).object()["balances"].([]any) {
		if balance := item.(fields); balance["creditKey"] == credit {
			return fmt.Sprint(balance["amountNanocredits"])
		}
	}
	return "0"
}

func walletPath(identity string) string { return "/v1/wallets/" + url.PathEscape(identity) }
