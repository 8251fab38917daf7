package api

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"purser/api/openapi"
)

// contract is every operation with the permission that it needs.
var contract = map[string]string{
	"getApplication":             "GET /v1/application credits:read",
	"getOpenapi":                 "GET /v1/openapi.json ",
	"createCredit":               "POST /v1/credits credits:write",
	"listCredits":                "GET /v1/credits credits:read",
	"getCredit":                  "GET /v1/credits/{key} credits:read",
	"updateCredit":               "PATCH /v1/credits/{key} credits:write",
	"putAlertRule":               "PUT /v1/alert-rules/{key} credits:write",
	"listAlertRules":             "GET /v1/alert-rules credits:read",
	"getAlertRule":               "GET /v1/alert-rules/{key} credits:read",
	"deleteAlertRule":            "DELETE /v1/alert-rules/{key} credits:write",
	"createFeature":              "POST /v1/features features:write",
	"listFeatures":               "GET /v1/features features:read",
	"getFeature":                 "GET /v1/features/{key} features:read",
	"updateFeature":              "PATCH /v1/features/{key} features:write",
	"createPlan":                 "POST /v1/plans plans:write",
	"listPlans":                  "GET /v1/plans plans:read",
	"getPlan":                    "GET /v1/plans/{key} plans:read",
	"updatePlan":                 "PATCH /v1/plans/{key} plans:write",
	"getCatalog":                 "GET /v1/catalog credits:read features:read plans:read",
	"previewCatalog":             "POST /v1/catalog/preview credits:read features:read plans:read",
	"applyCatalog":               "POST /v1/catalog/apply credits:write features:write plans:write",
	"getSubscription":            "GET /v1/subscriptions/{identity} subscriptions:read",
	"changeSubscription":         "POST /v1/subscriptions/{identity}/change subscriptions:write",
	"previewSubscriptionChange":  "POST /v1/subscriptions/{identity}/preview-change subscriptions:read",
	"cancelSubscription":         "POST /v1/subscriptions/{identity}/cancel subscriptions:write",
	"createSubscriptionCheckout": "POST /v1/subscription-checkout subscriptions:write",
	"createTopupCheckout":        "POST /v1/topup-checkout subscriptions:write",
	"createBillingPortal":        "POST /v1/billing-portal subscriptions:write",
	"createWallet":               "POST /v1/wallets wallets:write",
	"listWallets":                "GET /v1/wallets wallets:read",
	"getWallet":                  "GET /v1/wallets/{identity} wallets:read",
	"setBillingPeriod":           "PATCH /v1/wallets/{identity}/billing-period wallets:write",
	"createDeposit":              "POST /v1/deposits deposits:write",
	"listDeposits":               "GET /v1/deposits deposits:read",
	"getBalances":                "GET /v1/wallets/{identity}/balances wallets:read",
	"listJournal":                "GET /v1/wallets/{identity}/journal journal:read",
	"listEvents":                 "GET /v1/events journal:read",
	"getUsage":                   "GET /v1/usage journal:read",
	"getEvent":                   "GET /v1/events/{id} journal:read",
	"exportWallet":               "GET /v1/wallets/{identity}/export wallets:write journal:read",
	"createTransfer":             "POST /v1/transfers wallets:transfer",
	"eraseWallet":                "POST /v1/wallets/{identity}/erase wallets:erase",
	"renameWallet":               "POST /v1/wallets/{identity}/rename wallets:write",
	"reverseEvent":               "POST /v1/events/{id}/reverse events:reverse",
	"explainUsage":               "POST /v1/explain events:ingest journal:read",
	"checkUsage":                 "POST /v1/check events:ingest",
	"trackUsage":                 "POST /v1/events events:ingest",
	"trackBatch":                 "POST /v1/events/batch events:ingest",
	"trackGroup":                 "POST /v1/events/group events:ingest",
	"listNotifications":          "GET /v1/notifications notifications:read",
	"getNotification":            "GET /v1/notifications/{id} notifications:read",
	"listDeliveryAttempts":       "GET /v1/notifications/{id}/attempts notifications:read",
	"redeliverNotification":      "POST /v1/notifications/{id}/redeliver webhooks:write",
	"createWebhookEndpoint":      "POST /v1/webhook-endpoints webhooks:write",
	"listWebhookEndpoints":       "GET /v1/webhook-endpoints notifications:read",
	"getWebhookEndpoint":         "GET /v1/webhook-endpoints/{id} notifications:read",
	"updateWebhookEndpoint":      "PATCH /v1/webhook-endpoints/{id} webhooks:write",
	"deleteWebhookEndpoint":      "DELETE /v1/webhook-endpoints/{id} webhooks:write",
	"rotateWebhookSecret":        "POST /v1/webhook-endpoints/{id}/rotate-secret webhooks:write",
	"testWebhookEndpoint":        "POST /v1/webhook-endpoints/{id}/test webhooks:write",
	"replayWebhooks":             "POST /v1/webhook-endpoints/{id}/replay webhooks:write",
}

func loaded(t testing.TB) *document {
	t.Helper()
	doc, err := loadDocument("")
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func (d *document) named(t testing.TB, id string) *operation {
	t.Helper()
	for _, op := range d.operations {
		if op.id == id {
			return op
		}
	}
	t.Fatalf("there is no operation %s", id)
	return nil
}

func TestDocumentOperations(t *testing.T) {
	got := map[string]string{}
	for _, op := range loaded(t).operations {
		if got[op.id] != "" {
			t.Errorf("%s is there twice", op.id)
		}
		got[op.id] = op.method + " " + op.path + " " + op.permission
	}
	if !maps.Equal(got, contract) {
		for id := range contract {
			if got[id] != contract[id] {
				t.Errorf("%s is %q, want %q", id, got[id], contract[id])
			}
		}
		for id := range got {
			if contract[id] == "" {
				t.Errorf("%s is not in the contract", id)
			}
		}
	}
}

func TestDocumentAnswers(t *testing.T) {
	for _, op := range loaded(t).operations {
		want := []int{500}
		if op.permission != "" {
			want = append(want, 400, 401, 403, 429)
		} else if got := slices.Sorted(maps.Keys(op.responses)); op.id != "getOpenapi" || !slices.Equal(got, []int{200, 500}) {
			t.Errorf("%s describes %v", op.id, got)
		}
		if op.body != nil {
			want = append(want, 413, 415)
		}
		if len(op.params.properties) > 0 && op.id != "getSubscription" { // which answers null
			want = append(want, 404)
		}
		success := 0
		for status, answer := range op.responses {
			if status < 300 {
				success++
			}
			if p := answer.headers.property("X-Request-Id"); p == nil || !p.required {
				t.Errorf("%s %d does not promise X-Request-Id", op.id, status)
			}
			if p := answer.headers.property("Retry-After"); (p != nil && p.required) != (status == 429) {
				t.Errorf("%s %d: Retry-After belongs to 429 alone", op.id, status)
			}
		}
		if success == 0 {
			t.Errorf("%s never succeeds", op.id)
		}
		for _, status := range want {
			if op.responses[status] == nil {
				t.Errorf("%s does not describe %d", op.id, status)
			}
		}
		if op.id == "listDeposits" && slices.Contains(op.errors, "wallet_not_found") {
			t.Error("deposits of an unknown identity are an empty page")
		}
		if op.responses[405] != nil {
			t.Errorf("%s describes 405, which no operation answers", op.id)
		}
	}
}

func TestDocumentIsClosed(t *testing.T) {
	var walk func(at string, s *schema)
	walk = func(at string, s *schema) {
		if s.types&kindObject != 0 && s.open && !strings.HasSuffix(at, "Notification200.data") && at != "listNotifications200.data[].data" { // which depends on the type
			t.Errorf("%s lets unknown fields through", at)
		}
		for _, p := range s.properties {
			walk(at+"."+p.name, p.schema)
		}
		for i, alternative := range s.oneOf {
			walk(fmt.Sprintf("%s|%d", at, i), alternative)
		}
		if s.items != nil {
			walk(at+"[]", s.items)
		}
		if s.values != nil {
			walk(at+"{}", s.values)
		}
	}
	for _, op := range loaded(t).operations {
		if op.body != nil {
			walk(op.id, op.body)
		}
		for status, answer := range op.responses {
			if op.id != "getOpenapi" || status != 200 { // the document itself
				walk(fmt.Sprint(op.id, status), answer.body)
			}
		}
	}
}

func TestDocumentStructure(t *testing.T) {
	root := expanded(t)
	if root.Text("openapi") != "3.1.0" || root.Object("info").Text("title") != "Purser" || root.Object("info").Text("version") != "1.0.0" {
		t.Errorf("the head is %q, %v", root.Text("openapi"), root.Object("info"))
	}
	for _, member := range slices.Sorted(maps.Keys(root)) {
		if !slices.Contains([]string{"openapi", "info", "servers", "security", "tags", "paths", "webhooks", "components"}, member) {
			t.Errorf("%s is no member of an OpenAPI document", member)
		}
	}
	var tags []string
	for _, tag := range root.Objects("tags") {
		tags = append(tags, tag.Text("name"))
	}
	known := []string{"operationId", "tags", "summary", "description", "security", "parameters", "requestBody", "responses", "x-permission", "x-errors", "x-max-body", "x-result-per-item"}
	for path, item := range root.Object("paths") {
		for method, node := range item.(input) {
			at, node := method+" "+path, node.(input)
			for member := range node {
				if !slices.Contains(known, member) {
					t.Errorf("%s: %s is no member of an operation", at, member)
				}
			}
			if node.Text("summary") == "" || node.Text("description") == "" {
				t.Errorf("%s is not described", at)
			}
			if tag := fmt.Sprint(node["tags"].([]any)...); !slices.Contains(tags, tag) {
				t.Errorf("%s: the tag %s is not declared", at, tag)
			}
			if node.Has("requestBody") && !node.Object("requestBody").Bool("required") {
				t.Errorf("%s: the body is not required", at)
			}
			for status, answer := range node.Object("responses") {
				if c := newCompiler(asObject(root)); c.resolve(asObject(answer.(input)), at).Text("description") == "" {
					t.Errorf("%s %s is not described", at, status)
				}
			}
		}
	}
	for name, parameter := range root.Object("components").Object("parameters") {
		if p := parameter.(input); (p.Text("in") == "path") != p.Bool("required") {
			t.Errorf("the parameter %s: a parameter of a path is required, one of a query that all share is not", name)
		}
	}
}

// TestDocumentReferences finds components that nothing uses and references that
// the compiler never followed.
func TestDocumentReferences(t *testing.T) {
	root, encoded := expanded(t), loaded(t).json
	for kind, components := range root.Object("components") {
		for name := range components.(input) {
			reference := fmt.Sprintf(`"#/components/%s/%s"`, kind, name)
			unrouted := name == "MethodNotAllowed" || name == "NotFound" && kind == "responses" // answers of a path, not of an operation
			if used := strings.Contains(string(encoded), reference); used == unrouted && kind != "securitySchemes" {
				t.Errorf("%s: used is %v", reference, used)
			}
		}
	}
}

func TestDocumentExamples(t *testing.T) {
	root := expanded(t)
	c, examples := newCompiler(asObject(root)), 0
	check := func(at string, s *schema, example any) {
		examples++
		if v := s.check(example); v != nil {
			t.Errorf("%s: the example is not valid: %s %s", at, v.path, v.broken)
		}
	}
	var walk func(at string, node any)
	walk = func(at string, node any) {
		switch node := node.(type) {
		case []any:
			for i, item := range node {
				walk(fmt.Sprintf("%s/%d", at, i), item)
			}
		case input:
			if example, given := node["example"]; given { // of a media type or a parameter
				check(at, c.schema(asObject(node.Object("schema")), at), example)
			} else if named, given := node["examples"].(input); given { // of an error response
				for code, example := range named {
					check(at+"/"+code, c.schema(asObject(node.Object("schema")), at), example.(input)["value"])
				}
			} else if strings.HasSuffix(at, "/application/json") {
				t.Errorf("%s has no example", at)
			}
			if list, given := node["examples"].([]any); given { // of a schema
				for _, example := range list {
					check(at, c.schema(asObject(node), at), example)
				}
			}
			for name, member := range node {
				if name != "example" && name != "examples" {
					walk(at+"/"+name, member)
				}
			}
		}
	}
	walk("", root)
	if err := c.err(); err != nil {
		t.Error(err)
	}
	if examples < 60 {
		t.Errorf("only %d examples were found", examples)
	}
}

func TestCompilerRefuses(t *testing.T) {
	for name, c := range map[string]struct{ schema, complaint string }{
		"an unknown keyword":               {`{"type":"string","contentEncoding":"base64"}`, "contentEncoding is not understood"},
		"a keyword below":                  {`{"type":"object","properties":{"a":{"type":"string","not":{}}}}`, "not is not understood"},
		"an unknown type":                  {`{"type":"number"}`, `"number" is not understood`},
		"no type":                          {`{"minLength":1}`, "there is neither a type nor oneOf"},
		"a type beside oneOf":              {`{"type":"string","oneOf":[{"type":"string"}]}`, "or both"},
		"an enum that null escapes":        {`{"type":["string","null"],"enum":["a"]}`, "an enum is for strings alone"},
		"required without properties":      {`{"type":"object","required":["a"]}`, "required needs properties"},
		"two minima":                       {`{"type":"integer","minimum":1,"exclusiveMinimum":1}`, "there are two minima"},
		"an array of anything":             {`{"type":"array"}`, "there are no items"},
		"an unknown format":                {`{"type":"string","format":"email"}`, "format email is not understood"},
		"a fraction as a bound":            {`{"type":"integer","minimum":0.5}`, "minimum is missing or of the wrong type"},
		"a pattern without a rule":         {`{"type":"string","pattern":"^a$"}`, "x-rule is missing"},
		"a broken pattern":                 {`{"type":"string","pattern":"(","x-rule":"x"}`, "missing closing"},
		"a default that is not valid":      {`{"type":"integer","maximum":5,"default":6}`, "it must be at most 5"},
		"a default that could be changed":  {`{"type":"array","items":{"type":"string"},"default":["a"]}`, "neither a scalar nor an empty array"},
		"a reference to nothing":           {`{"$ref":"#/components/schemas/Missing"}`, "refers to nothing"},
		"a reference to itself":            {`{"$ref":"#/loop"}`, "refers to itself"},
		"a rule beside a reference":        {`{"$ref":"#/text","maxLength":3}`, "maxLength cannot stand beside $ref"},
		"a default beside a reference":     {`{"$ref":"#/text","default":"a"}`, "default cannot stand beside $ref"},
		"alternatives that overlap":        {`{"oneOf":[{"type":"string"},{"type":["string","null"]}]}`, "have a type in common"},
		"a required field it does not say": {`{"type":"object","properties":{},"required":["a"]}`, "a is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			root, err := openapi.Parse([]byte(`{"loop":{"$ref":"#/loop"},"text":{"type":"string"}}`))
			if err != nil {
				t.Fatal(err)
			}
			node, err := openapi.Parse([]byte(c.schema))
			if err != nil {
				t.Fatal(err)
			}
			compiler := newCompiler(root)
			compiler.schema(node, "here")
			if err := compiler.err(); err == nil || !strings.Contains(err.Error(), c.complaint) {
				t.Errorf("the complaint is %v, want %q", err, c.complaint)
			}
		})
	}
}
