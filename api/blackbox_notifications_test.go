package api_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"purser/api"
	"purser/fault"
	"purser/ids"
	"purser/keys"
	"purser/notify"
	"purser/notify/delivery"
	"purser/store/storetest"
)

// newEndpoint is an endpoint at which no one listens.
func newEndpoint() fields {
	return fields{"url": "http://127.0.0.1:1024/hooks", "types": []string{"plan.synced"}}
}

// number gives the application's notifications their numbers, and sends them.
func (tn *tenant) number() {
	tn.t.Helper()
	if err := tn.node.queue.DrainLane(tn.t.Context(), tn.app.ID, delivery.Lane); err != nil {
		tn.t.Fatal(err)
	}
}

const noSuchEndpoint = "/v1/webhook-endpoints/whe_01kdvdna0cfx9a26nnrw56xpp0"

var (
	descriptionRule = rule{good: append(textRule(500).good, quoted("")), bad: slices.DeleteFunc(slices.Clone(textRule(500).bad), func(v string) bool { return v == quoted("") })}
	typesRule       = rule{good: []string{`[]`, `["deposit.created","key.revoked"]`}, bad: []string{`null`, `{}`, `"deposit.created"`, `["deposit"]`, `[1]`, `[null]`, `true`}}
	idRule          = rule{
		good: []string{quoted("whe_01kdvdna0cfx9a26nnrw56xpp0")},
		bad:  append([]string{quoted(""), quoted("whe_"), quoted("ntf_01kdvdna0cfx9a26nnrw56xpp0"), quoted("whe_01KDVDNA0CFX9A26NNRW56XPP0")}, noText...),
	}
)

var notificationOperations = []bodied{
	{
		id: "createWebhookEndpoint", method: "POST", target: "/v1/webhook-endpoints", required: []string{"url"},
		sample: newEndpoint,
		rules:  map[string]rule{"url": addressRule, "types": typesRule, "description": descriptionRule},
	},
	{
		id: "updateWebhookEndpoint", method: "PATCH", target: noSuchEndpoint, mayBeEmpty: true,
		sample: func() fields { return fields{"description": "New"} },
		rules: map[string]rule{
			"expectedRevision": wholeRule("1", "9223372036854775807"), "url": addressRule, "types": typesRule, "description": descriptionRule,
			"status": enumRule("enabled", "paused"),
		},
	},
	{
		id: "rotateWebhookSecret", method: "POST", target: noSuchEndpoint + "/rotate-secret", mayBeEmpty: true,
		sample: func() fields { return fields{"overlapSeconds": 1} },
		rules:  map[string]rule{"expectedRevision": wholeRule("1", "9223372036854775807"), "overlapSeconds": wholeRule("0", "604800")},
	},
	{
		id: "testWebhookEndpoint", method: "POST", target: noSuchEndpoint + "/test", required: []string{"type"},
		sample: func() fields { return fields{"type": "key.revoked"} },
		rules:  map[string]rule{"type": enumRule("deposit.created", "key.revoked")},
	},
	{
		id: "replayWebhooks", method: "POST", target: noSuchEndpoint + "/replay", required: []string{"fromSeq", "only"},
		sample: func() fields { return fields{"fromSeq": 1, "only": "all"} },
		rules:  map[string]rule{"fromSeq": wholeRule("1", maxSafe), "toSeq": wholeRule("1", maxSafe), "only": enumRule("failed", "all")},
	},
	{
		id: "redeliverNotification", method: "POST", target: "/v1/notifications/ntf_01kdvdna0cfx9a26nnrw56xpp0/redeliver", mayBeEmpty: true,
		sample: func() fields { return fields{"endpointId": "whe_01kdvdna0cfx9a26nnrw56xpp0"} },
		rules:  map[string]rule{"endpointId": idRule},
	},
}

func TestFeed(t *testing.T) {
	t.Parallel()
	tn := newTenant(t)
	tn.credit("tokens")
	first, second := newHolder(), newHolder()
	for range 3 {
		tn.deposit(first, "tokens", "1000")
		tn.deposit(second, "tokens", "1000")
	}
	if page := tn.get("/v1/notifications").is(200).object(); len(page["data"].([]any)) != 0 || number(page, "nextAfter") != 0 || page["more"] != false {
		t.Errorf("before anything is numbered: %v", page)
	}
	tn.number()
	read := func(query string) (seqs []int64, page fields) {
		page = tn.get("/v1/notifications?" + query).is(200).object()
		for _, item := range page["data"].([]any) {
			seqs = append(seqs, number(item.(fields), "seq"))
		}
		return seqs, page
	}
	t.Run("is in order, page by page", func(t *testing.T) {
		var all []int64
		for after, more := int64(0), true; more; {
			seqs, page := read(fmt.Sprintf("after=%d&limit=4", after))
			all, after, more = append(all, seqs...), number(page, "nextAfter"), page["more"].(bool)
		}
		if !slices.Equal(all, []int64{1, 2, 3, 4, 5, 6}) {
			t.Errorf("read %v", all)
		}
	})
	t.Run("filters by identity and type", func(t *testing.T) {
		if seqs, page := read("identity=" + second); !slices.Equal(seqs, []int64{2, 4, 6}) || number(page, "nextAfter") != 6 {
			t.Errorf("read %v of %v", seqs, page)
		}
		if seqs, _ := read("types=deposit.created,key.revoked&after=4"); !slices.Equal(seqs, []int64{5, 6}) {
			t.Errorf("read %v", seqs)
		}
		if seqs, page := read("types=key.revoked"); len(seqs) != 0 || number(page, "nextAfter") != 6 || page["more"] != false {
			t.Errorf("read %v of %v", seqs, page)
		}
		if seqs, _ := read("identity=" + newHolder()); len(seqs) != 0 {
			t.Errorf("an identity without a wallet has %v", seqs)
		}
	})
	t.Run("refuses what it cannot read", func(t *testing.T) {
		for _, query := range []string{"after=-1", "after=x", "limit=0", "limit=201", "wait=26", "wait=-1", "types=", "types=nothing", "types=deposit.created,", "identity=", "cursor=x"} {
			tn.in(t).get("/v1/notifications?" + query).refused("invalid_request")
		}
	})
	t.Run("shows one notification", func(t *testing.T) {
		_, page := read("limit=1")
		item := page["data"].([]any)[0].(fields)
		if got := tn.get("/v1/notifications/" + item["id"].(string)).is(200).object(); fmt.Sprint(got) != fmt.Sprint(item) {
			t.Errorf("got %v, want %v", got, item)
		}
		data := item["data"].(fields)
		if item["identity"] != first || item["type"] != "deposit.created" || item["live"] != false || data["deltaNanocredits"] != "1000" || data["balanceNanocredits"] != "1000" {
			t.Errorf("the notification is %v", item)
		}
	})
	t.Run("waits for the next notification", func(t *testing.T) {
		got := make(chan answer, 1)
		go func() { got <- tn.in(t).get("/v1/notifications?after=6&wait=25") }()
		tn.deposit(first, "tokens", "1")
		tn.number()
		page := (<-got).is(200).object()
		if list := page["data"].([]any); len(list) != 1 || number(list[0].(fields), "seq") != 7 {
			t.Errorf("the wait ended with %v", page)
		}
	})
	t.Run("is refused when its key was revoked while it waited", func(t *testing.T) {
		key := tn.newKey(keys.Spec{Preset: keys.ReadOnly})
		for _, revoked := range []bool{false, true} {
			err := tn.node.server.WaitForFeed(t.Context(), key.APIKey, func(context.Context) (bool, error) {
				if revoked {
					tn.revoke(key)
				}
				return true, nil
			})
			if fault.Is(err, fault.RevokedAPIKey) != revoked {
				t.Errorf("a key, revoked %v: %v", revoked, err)
			}
		}
	})
	t.Run("does not wait on a server that stops", func(t *testing.T) {
		stopping := tn.on(limitedNode(t, api.Options{}))
		stopping.node.server.StopWaiting()
		if page := stopping.get("/v1/notifications?after=100&wait=25").is(200).object(); len(page["data"].([]any)) != 0 {
			t.Errorf("read %v", page)
		}
	})
}

func TestWebhookEndpoints(t *testing.T) {
	t.Parallel()
	tn := newTenant(t)
	made := tn.post("/v1/webhook-endpoints", fields{"url": "https://example.com/hooks", "description": "Mirror"}).is(201).object()
	secret, path := made["secret"].(string), "/v1/webhook-endpoints/"+made["id"].(string)
	if _, err := notify.ParseSecret(secret); err != nil || made["status"] != "enabled" || number(made, "revision") != 1 || len(made["types"].([]any)) != 0 {
		t.Errorf("made %v, %v", made, err)
	}
	t.Run("show their secret once", func(t *testing.T) {
		for _, target := range []string{path, "/v1/webhook-endpoints"} {
			if got := tn.in(t).get(target).is(200); strings.Contains(string(got.body), "secret") {
				t.Errorf("%s shows %s", target, got.body)
			}
		}
		if found := storetest.TablesWith(t, storetest.URL(t), secret[6:]); len(found) > 0 {
			t.Errorf("the secret is stored in %v", found)
		}
	})
	t.Run("change with their revision", func(t *testing.T) {
		changed := tn.in(t).patch(path, fields{"expectedRevision": 1, "types": []string{"key.revoked", "key.revoked"}, "status": "paused"}).is(200)
		changed.shows(fields{"revision": 2, "status": "paused", "pauseReason": "requested", "types": []any{"key.revoked"}, "description": "Mirror"})
		tn.in(t).patch(path, fields{"expectedRevision": 1, "status": "enabled"}).refused("revision_conflict")
		tn.in(t).patch(path, fields{"status": "disabled"}).refused("invalid_request")
		tn.in(t).patch(path, fields{"url": "https://ann:secret@example.com"}).refused("invalid_request")
		tn.in(t).patch(path, fields{"url": "https://example.com:99999/"}).refused("invalid_request")
		tn.in(t).patch(path, fields{"status": "enabled"}).is(200).shows(fields{"revision": 3, "pauseReason": nil})
	})
	t.Run("keep their revision when nothing changes", func(t *testing.T) {
		for _, body := range []fields{{}, {"expectedRevision": 3, "url": "https://example.com/hooks", "types": []string{"key.revoked"}, "description": "Mirror", "status": "enabled"}} {
			tn.in(t).patch(path, body).is(200).shows(fields{"revision": 3, "status": "enabled", "description": "Mirror"})
		}
		tn.in(t).patch(path, fields{"expectedRevision": 2}).refused("revision_conflict")
	})
	t.Run("rotate their secret", func(t *testing.T) {
		rotated := tn.in(t).post(path+"/rotate-secret", fields{}).is(200).object()
		if rotated["secret"] == secret || number(rotated, "revision") != 4 {
			t.Errorf("rotated %v", rotated)
		}
		for _, revision := range []int{3, 5} {
			tn.in(t).post(path+"/rotate-secret", fields{"expectedRevision": revision}).refused("revision_conflict")
		}
		tn.in(t).get(path).shows(fields{"revision": 4})
		again := tn.in(t).post(path+"/rotate-secret", fields{"expectedRevision": 4}).is(200).object()
		if again["secret"] == rotated["secret"] || number(again, "revision") != 5 {
			t.Errorf("rotated again %v", again)
		}
	})
	t.Run("of a live application need https", func(t *testing.T) {
		live := newTenantAt(t, sharedNode(t), newName(), true)
		live.post("/v1/webhook-endpoints", fields{"url": "http://example.com/hooks"}).refused("invalid_request")
	})
	t.Run("are at most twenty", func(t *testing.T) {
		for range notify.MaxEndpoints - 1 {
			tn.in(t).post("/v1/webhook-endpoints", newEndpoint()).is(201)
		}
		tn.in(t).post("/v1/webhook-endpoints", newEndpoint()).refused("too_many_webhook_endpoints")
	})
	t.Run("are deleted", func(t *testing.T) {
		tn.in(t).send(request{method: "DELETE", target: path}).is(200).shows(fields{"deleted": true})
		tn.in(t).send(request{method: "DELETE", target: path}).refused("webhook_endpoint_not_found")
		tn.in(t).get(path).refused("webhook_endpoint_not_found")
		tn.in(t).post("/v1/webhook-endpoints", newEndpoint()).is(201)
	})
	t.Run("are changed in the audit log without their secrets", func(t *testing.T) {
		var actions []string
		for _, e := range tn.auditLog() {
			if text := fmt.Sprint(e); strings.Contains(text, secret[6:20]) {
				t.Errorf("the log has the secret: %s", text)
			}
			if strings.HasPrefix(e.Action, "webhook.") && e.Target == made["id"] {
				actions = append(actions, e.Action)
			}
		}
		if got := strings.Join(actions, " "); got != "webhook.create webhook.update webhook.update webhook.rotate_secret webhook.rotate_secret webhook.delete" {
			t.Errorf("the log has %s", got)
		}
	})
}

// What is sent again has the same ids and numbers.
func TestReplays(t *testing.T) {
	t.Parallel()
	tn := newTenant(t)
	tn.credit("tokens")
	holder := newHolder()
	for range 3 {
		tn.deposit(holder, "tokens", "1")
	}
	tn.number()
	closed := fmt.Sprintf("http://127.0.0.1:%d/hooks", storetest.ClosedPort(t))
	id := tn.post("/v1/webhook-endpoints", fields{"url": closed, "types": []string{"deposit.created"}}).is(201).text("id")
	path := "/v1/webhook-endpoints/" + id
	tn.patch(path, fields{"status": "paused"}).is(200)
	queued := func(t *testing.T, body fields) int64 {
		t.Helper()
		return number(tn.in(t).post(path+"/replay", body).is(202).object(), "queued")
	}
	if got := queued(t, fields{"fromSeq": 1, "only": "failed"}); got != 0 {
		t.Errorf("%d deliveries failed", got)
	}
	if got := queued(t, fields{"fromSeq": 2, "only": "all"}); got != 2 {
		t.Errorf("%d deliveries from before the endpoint were queued", got)
	}
	if got := queued(t, fields{"fromSeq": 1, "toSeq": 2, "only": "all"}); got != 1 { // the second is pending
		t.Errorf("%d deliveries were queued", got)
	}
	tn.post(path+"/replay", fields{"fromSeq": 1, "toSeq": 20_000, "only": "all"}).is(202)
	tn.post(path+"/replay", fields{"fromSeq": 2, "toSeq": 2, "only": "all"}).is(202)
	refused := tn.post(path+"/replay", fields{"fromSeq": 3, "toSeq": 2, "only": "all"}).refused("invalid_request")
	if !strings.Contains(refused.text("message"), "toSeq") {
		t.Errorf("the refusal is %s", refused.body)
	}
	first := tn.get("/v1/notifications?limit=1").is(200).object()["data"].([]any)[0].(fields)["id"].(string)
	if got := number(tn.post("/v1/notifications/"+first+"/redeliver", fields{}).is(202).object(), "queued"); got != 1 {
		t.Errorf("%d deliveries were queued", got)
	}
	tn.post("/v1/notifications/"+first+"/redeliver", fields{"endpointId": ids.New().Format(ids.WebhookEndpoint)}).refused("webhook_endpoint_not_found")
	tn.post("/v1/notifications/"+first+"/redeliver", fields{"endpointId": ids.ID{}.Format(ids.WebhookEndpoint)}).refused("webhook_endpoint_not_found")
	test := tn.post(path+"/test", fields{"type": "plan.synced"}).is(202).text("notificationId")
	got := tn.get("/v1/notifications/" + test).is(200).object()
	if got["test"] != true || number(got, "seq") != 0 {
		t.Errorf("the test is %v", got)
	}
	if page := tn.get("/v1/notifications?types=plan.synced").is(200).object(); len(page["data"].([]any)) != 0 {
		t.Errorf("the test is in the feed: %v", page)
	}
	if list := tn.get("/v1/notifications/" + first + "/attempts").is(200).object()["data"].([]any); len(list) != 0 {
		t.Errorf("a paused endpoint was tried: %v", list)
	}
	tn.patch(path, fields{"status": "enabled"}).is(200)
	tn.number()
	attempt := tn.get("/v1/notifications/" + first + "/attempts").is(200).object()["data"].([]any)[0].(fields)
	if attempt["endpointId"] != id || attempt["status"] != nil || attempt["error"] != "The connection was refused." {
		t.Errorf("the attempt is %v", attempt)
	}
}
