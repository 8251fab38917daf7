package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"time"

	"purser/ids"
)

// tenant is an application with one credit, two features, a plan that limits one of them,
// and many wallets on that plan.
type tenant struct {
	name     string
	database string
	secret   string
	org      ids.ID
	app      ids.ID
	key      ids.ID
	credit   ids.ID
	wallets  int
	accepted int // events that were answered with 201
	stored   int // events that were written past the server
}

// orgName is the organization of all tenants.
const orgName = "Bench"

const (
	cost    = 1_000                     // nanocredits of one event
	deposit = 1_000_000_000_000_000_000 // more than any run spends
	limit   = 100                       // uses in a month that the plan includes; more are charged
	planKey = "pro"
)

// newTenant makes an application in the way an operator does, with a key from the
// command line and the catalog over HTTP. Its wallets are written in bulk: a
// million deposits would take longer than all measurements.
func (h *harness) newTenant(ctx context.Context, n *node, name string, wallets int) (*tenant, error) {
	t := &tenant{name: name, database: n.database, wallets: wallets}
	if err := t.createKey(ctx, h.program, n.env); err != nil {
		return nil, fmt.Errorf("making a key: %w", err)
	}
	var credit struct{ ID string }
	if err := t.post(ctx, n, "/v1/credits", map[string]any{"key": "credits", "name": "Credits", "unit": "credit"}, &credit); err != nil {
		return nil, err
	}
	var err error
	if t.credit, err = ids.Parse(ids.Credit, credit.ID); err != nil {
		return nil, err
	}
	for key, name := range map[string]string{featureKey: "Calls", limitedKey: "Exports"} {
		feature := map[string]any{"key": key, "name": name, "unit": "call", "creditKey": "credits", "costNanocredits": fmt.Sprint(cost)}
		if err := t.post(ctx, n, "/v1/features", feature, nil); err != nil {
			return nil, err
		}
	}
	plan := map[string]any{"key": planKey, "name": "Pro", "amountCents": 2900, "currency": "eur", "interval": "month",
		"featureLimits": []any{map[string]any{"featureKey": limitedKey, "limit": limit, "overage": "credits"}}}
	if err := t.post(ctx, n, "/v1/plans", plan, nil); err != nil {
		return nil, err
	}
	_, err = h.postgres.query(ctx, t.database, t.walletsSQL(0, wallets, time.Now().Add(-storedOver-time.Hour), time.Hour)+t.subscriptionsSQL())
	return t, err
}

func (t *tenant) createKey(ctx context.Context, program string, env []string) error {
	create := exec.CommandContext(ctx, program, "keys", "create", "--org", orgName, "--app", t.name, "--preset", "setup", "--json")
	create.Env = env
	out, err := output(create)
	if err != nil {
		return err
	}
	var made struct{ OrgID, AppID, KeyID, Secret string }
	if err := json.Unmarshal([]byte(out), &made); err != nil {
		return err
	}
	t.secret = made.Secret
	for prefix, part := range map[string]struct {
		text string
		into *ids.ID
	}{
		ids.Organization: {made.OrgID, &t.org},
		ids.Application:  {made.AppID, &t.app},
		ids.APIKey:       {made.KeyID, &t.key},
	} {
		if *part.into, err = ids.Parse(prefix, part.text); err != nil {
			return err
		}
	}
	return nil
}

// watch has a rule with as many thresholds as one may have watch every wallet.
func (t *tenant) watch(ctx context.Context, n *node) error {
	return t.send(ctx, n, http.MethodPut, "/v1/alert-rules/low", map[string]any{
		"kind": "balance", "creditKey": "credits", "thresholdsNanocredits": []string{"5", "4", "3", "2", "1"},
	}, nil)
}

func (t *tenant) post(ctx context.Context, n *node, path string, body, into any) error {
	return t.send(ctx, n, http.MethodPost, path, body, into)
}

func (t *tenant) send(ctx context.Context, n *node, method, path string, body, into any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, method, "http://"+n.host+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+t.secret)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return n.explain(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusCreated && response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s %s answered %s %s", method, path, response.Status, answer)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(answer, into)
}

// uuidAt is SQL for a UUIDv7 of a moment, made from a number that is used once.
func uuidAt(ms, number string) string {
	digest := fmt.Sprintf("md5('%s' || (%s))", ids.New(), number)
	return fmt.Sprintf("(lpad(to_hex(%s), 12, '0') || '7' || substr(%s, 1, 3) || '8' || substr(%s, 4, 15))::uuid", ms, digest, digest)
}

// walletsSQL writes each of the wallets as its first deposit would leave it, made
// evenly over a stretch of time. Foreign keys are not looked at: the rows are right
// by construction, and there are millions.
func (t *tenant) walletsSQL(from, to int, since time.Time, over time.Duration) string {
	moment := fmt.Sprintf("(%d + (g - %d) * %d / %d)", since.UnixMilli(), from, over.Milliseconds(), to-from)
	return fmt.Sprintf(`
		SET session_replication_role = replica;
		BEGIN;
		INSERT INTO wallets (app_id, org_id, id, identity, version, last_seq, created_at)
		SELECT '%[1]s', '%[2]s', %[3]s, '%[4]s' || lpad(g::text, %[5]d, '0'), 1, 1, %[6]s
		FROM generate_series(%[7]d::bigint, %[8]d - 1) g;
		INSERT INTO balances (app_id, org_id, wallet_id, credit_id, amount_nanocredits)
		SELECT app_id, org_id, id, '%[9]s', %[10]d FROM wallets WHERE app_id = '%[1]s' AND identity >= '%[11]s' ORDER BY id;
		INSERT INTO journal (app_id, org_id, id, wallet_id, seq, kind, credit_id, delta_nanocredits,
			balance_after, debt_after, idempotency_key, created_at)
		SELECT app_id, org_id, id, id, 1, 'deposit', '%[9]s', %[10]d, %[10]d, 0, identity, created_at
		FROM wallets WHERE app_id = '%[1]s' AND identity >= '%[11]s' ORDER BY id;
		COMMIT;`,
		t.app, t.org, uuidAt(moment, "g"), identityPrefix, identityDigits, moment, from, to, t.credit, int64(deposit), identityOf(from))
}

// subscriptionsSQL puts every wallet on the plan, in a period that began now.
func (t *tenant) subscriptionsSQL() string {
	now := time.Now().UnixMilli()
	return fmt.Sprintf(`
		INSERT INTO subscriptions (app_id, id, org_id, wallet_id, status, period_start, period_end, terms, plan_id, created_at)
		SELECT w.app_id, w.id, w.org_id, w.id, 'active', %[2]d, %[2]d + 31 * %[3]d::bigint, p.terms, p.id, w.created_at
		FROM wallets w JOIN plans p ON p.app_id = w.app_id WHERE w.app_id = '%[1]s' ORDER BY w.id;`, t.app, now, dayMS)
}
