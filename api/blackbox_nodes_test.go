package api_test

import (
	"crypto/rand"
	"fmt"
	"testing"
	"time"

	"purser/api"
	"purser/fault"
	"purser/ids"
	"purser/keys"
	"purser/metering"
	"purser/tenancy"
)

// pair is two servers on one database with one clock, and a tenant whose calls
// both have served already: what they remember is warm.
type pair struct {
	*tenant
	nodes []*node
	clock *clock
}

func newPair(t *testing.T) pair {
	t.Helper()
	// It stands, so that no key expires by itself, and it is later than all that
	// happens by the real clock meanwhile.
	c := &clock{standing: time.Now().Add(time.Hour).UnixMilli()}
	p := pair{newTenant(t), []*node{newNode(t, api.Options{}, c), newNode(t, api.Options{}, c)}, c}
	p.credit("gold")
	p.feature("chat", "gold", nil)
	return p
}

// keyedCalls are an event, a check and ordinary operations; each names a wallet
// that can pay.
func (p pair) keyedCalls(identity string) map[string]func() request {
	return map[string]func() request{
		"an event": func() request {
			return adds("/v1/events", fields{"id": newName(), "identity": identity, "feature": "chat"})
		},
		"a check":      func() request { return adds("/v1/check", fields{"identity": identity, "feature": "chat"}) },
		"a read":       func() request { return reads("/v1/credits/gold") },
		"a write":      func() request { return adds("/v1/deposits", newDeposit(identity, "gold")) },
		"a bad event":  func() request { return adds("/v1/events", fields{"id": newName()}) },
		"a large body": func() request { return request{method: "POST", target: "/v1/check", body: repeated(" ", 20000)} },
	}
}

// TestKeyEndsAtOnce: whatever comes first after the end of a key, wherever, is
// refused and has done nothing.
func TestKeyEndsAtOnce(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	identity := newHolder()
	p.deposit(identity, "gold", "1000000000")
	for ending, c := range map[string]struct {
		spec keys.Spec
		end  func(madeKey)
		code fault.Code
	}{
		"revoked": {keys.Spec{Preset: keys.Setup}, p.revoke, fault.RevokedAPIKey},
		"rotated": {keys.Spec{Preset: keys.Setup}, p.rotate, fault.RevokedAPIKey},
		// Less than a minute ahead: later, last use is due to be noted, and every key is read again.
		"expired": {keys.Spec{Preset: keys.Setup, ExpiresAt: 1}, func(madeKey) { p.clock.advance(40 * time.Second) }, fault.ExpiredAPIKey},
	} {
		for name, call := range p.keyedCalls(identity) {
			for i, n := range p.nodes {
				t.Run(fmt.Sprintf("%s, then %s at node %d", ending, name, i), func(t *testing.T) {
					if c.spec.ExpiresAt != 0 {
						c.spec.ExpiresAt = p.clock.now() + 30_000
					}
					key := p.newKey(c.spec)
					for _, warm := range p.nodes {
						for range 3 {
							for _, each := range p.keyedCalls(identity) {
								if got := p.in(t).on(warm).with(key.secret).send(each()); got.status == 401 {
									t.Fatalf("%s: %s", got, got.body)
								}
							}
						}
					}
					held := p.balance(identity, "gold")
					c.end(key)
					p.in(t).on(n).with(key.secret).send(call()).refused(c.code)
					if now := p.balance(identity, "gold"); now != held {
						t.Errorf("the balance went from %s to %s", held, now)
					}
				})
			}
		}
	}
}

func (p pair) rotate(key madeKey) {
	p.t.Helper()
	_, err := p.node.store.App(key.Scope).RotateKey(p.t.Context(), key.ID, func(old keys.APIKey) (keys.Rotated, error) {
		rotation := keys.Rotation{ID: ids.New(), Overlap: keys.NoOverlap}
		return keys.Rotate(old, rotation, tenancy.AllPermissions(), time.Now().UnixMilli(), rand.Reader)
	})
	if err != nil {
		p.t.Fatal(err)
	}
}

// eachWay runs a claim with the change made at one node and seen at the other,
// and at the one that made it.
func (p pair) eachWay(t *testing.T, claim func(t *testing.T, changing, seeing *tenant)) {
	for i, a := range p.nodes {
		for j, b := range p.nodes {
			t.Run(fmt.Sprintf("changed at %d, used at %d", i, j), func(t *testing.T) {
				changing, seeing := *p.tenant, *p.tenant
				changing.client, seeing.client = p.in(t).on(a), p.in(t).on(b)
				claim(t, &changing, &seeing)
			})
		}
	}
}

func TestPriceHoldsAtOnce(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	p.credit("silver")
	p.eachWay(t, func(t *testing.T, changing, seeing *tenant) {
		identity, key := newHolder(), "f-"+newName()
		changing.deposit(identity, "gold", "9000000")
		changing.deposit(identity, "silver", "9000000")
		seeing.use(identity, key, nil).refused("feature_not_found")
		seeing.ask(identity, key, nil).refused("feature_not_found")
		changing.feature(key, "gold", nil)
		for range 3 {
			seeing.use(identity, key, nil).is(201).shows(fields{"amountNanocredits": "1000"})
		}
		for cost := range 20 {
			amount := fmt.Sprint(2000 + cost)
			changing.patch("/v1/features/"+key, fields{"costNanocredits": amount}).is(200)
			seeing.use(identity, key, nil).is(201).shows(fields{"amountNanocredits": amount})
			seeing.ask(identity, key, nil).is(200).shows(fields{"amountNanocredits": amount})
		}
		changing.patch("/v1/features/"+key, fields{"quantityPerUnit": 2}).is(200)
		seeing.use(identity, key, nil).is(201).shows(fields{"amountNanocredits": "1010"})
		changing.patch("/v1/features/"+key, fields{"creditKey": "silver", "costNanocredits": "500"}).is(200)
		seeing.use(identity, key, nil).is(201).shows(fields{"amountNanocredits": "250"})
		if balance := seeing.balance(identity, "silver"); balance != "8999750" {
			t.Errorf("of silver %s is left", balance)
		}
		changing.patch("/v1/features/"+key, fields{"pricingMode": "callback"}).is(200)
		seeing.use(identity, key, nil).refused("amount_required")
		seeing.use(identity, key, fields{"amountNanocredits": "7"}).is(201).shows(fields{"amountNanocredits": "7"})
	})
}

func TestWalletHoldsAtOnce(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	p.feature("billed", "gold", fields{"deduplicationPeriod": "billing"})
	at := fields{"occurredAt": inside}

	t.Run("its balance", func(t *testing.T) {
		p.eachWay(t, func(t *testing.T, changing, seeing *tenant) {
			identity := newHolder()
			seeing.use(identity, "chat", nil).refused("insufficient_balance")
			for range 5 {
				changing.deposit(identity, "gold", "3000")
				for _, tn := range []*tenant{seeing, changing, seeing} {
					tn.use(identity, "chat", nil).is(201)
				}
				seeing.ask(identity, "chat", nil).is(200).shows(fields{"balanceNanocredits": "0"})
				seeing.use(identity, "chat", nil).refused("insufficient_balance")
				changing.use(identity, "chat", nil).refused("insufficient_balance")
			}
		})
	})
	t.Run("its billing period", func(t *testing.T) {
		p.eachWay(t, func(t *testing.T, changing, seeing *tenant) {
			identity := newHolder()
			path := walletPath(identity) + "/billing-period"
			changing.deposit(identity, "gold", "9000")
			seeing.use(identity, "billed", at).refused("billing_period_missing")
			changing.patch(path, period("month", february)).is(200)
			seeing.ask(identity, "billed", at).is(200).shows(fields{"periodStart": february, "periodEnd": march})
			changing.patch(path, period("day", 0)).is(200)
			today := fields{"periodStart": 1707523200000, "periodEnd": 1707609600000}
			seeing.ask(identity, "billed", at).is(200).shows(today)
			seeing.use(identity, "billed", at).is(201).shows(today)
			changing.use(identity, "billed", at).is(200).shows(merged(today, fields{"status": "deduplicated"}))
			changing.patch(path, period("month", 0)).refused("billing_period_locked")
		})
	})
	t.Run("its subscription", func(t *testing.T) {
		p.eachWay(t, func(t *testing.T, changing, seeing *tenant) {
			identity := newHolder()
			changing.deposit(identity, "gold", "9000")
			seeing.use(identity, "chat", at).is(201).shows(fields{"amountNanocredits": "1000"})
			changing.subscribe(identity, "chat", metering.StatusActive, metering.Limit{Limit: 2, Period: metering.LimitMonth, Overage: metering.OverageBlock})
			seeing.use(identity, "chat", at).is(201).shows(fields{"amountNanocredits": "0"})
			changing.use(identity, "chat", at).is(201).shows(fields{"amountNanocredits": "0"})
			seeing.use(identity, "chat", at).refused("feature_limit_exceeded")
		})
	})
}
