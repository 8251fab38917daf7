package docs

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"purser/api/openapi"
)

func readOurs(t *testing.T) *Reference {
	t.Helper()
	document, err := os.ReadFile("../api/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	root, err := openapi.Parse(document)
	if err != nil {
		t.Fatal(err)
	}
	reference, err := ReadReference(root)
	if err != nil {
		t.Fatal(err)
	}
	return reference
}

func (r *Reference) find(t *testing.T, id string) Operation {
	t.Helper()
	for _, group := range r.Groups {
		for _, op := range group.Operations {
			if op.ID == id {
				return op
			}
		}
	}
	t.Fatalf("there is no %s", id)
	return Operation{}
}

func (o Operation) field(name string) Field {
	for _, field := range append(o.Parameters, o.Body...) {
		if field.Name == name {
			return field
		}
	}
	return Field{}
}

func TestReference(t *testing.T) {
	t.Parallel()
	reference := readOurs(t)
	find := func(id string) Operation { return reference.find(t, id) }

	t.Run("has every operation of the document once, in a group", func(t *testing.T) {
		document, err := os.ReadFile("../api/openapi.yaml")
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		for _, group := range reference.Groups {
			if group.Name == "" || group.Description == "" || len(group.Operations) == 0 {
				t.Errorf("the group %+v", group)
			}
			for _, op := range group.Operations {
				if seen[op.ID] {
					t.Errorf("%s is there twice", op.ID)
				}
				seen[op.ID] = true
			}
		}
		if want := strings.Count(string(document), "operationId:"); len(seen) != want {
			t.Errorf("%d operations of %d", len(seen), want)
		}
	})

	t.Run("says of each operation what it takes and gives", func(t *testing.T) {
		for _, group := range reference.Groups {
			for _, op := range group.Operations {
				if op.Summary == "" || op.Description == "" || len(op.Answers) == 0 || len(op.Refusals) == 0 {
					t.Errorf("%s lacks something: %+v", op.ID, op)
				}
				for _, field := range append(op.Parameters, op.Body...) {
					if field.Type == "" {
						t.Errorf("%s: %s has no type", op.ID, field.Name)
					}
				}
				for _, answer := range op.Answers {
					if len(answer.Fields) == 0 || !json.Valid([]byte(answer.Example)) {
						t.Errorf("%s %d has %d fields and the example %s", op.ID, answer.Status, len(answer.Fields), answer.Example)
					}
				}
				if op.Method != "GET" && op.Method != "DELETE" && !json.Valid([]byte(op.BodyExample)) {
					t.Errorf("%s: the example body is %s", op.ID, op.BodyExample)
				}
			}
		}
	})

	t.Run("follows references, and takes what stands beside them first", func(t *testing.T) {
		event := find("trackUsage")
		if got := event.field("identity"); !got.Required || got.Rule != "1 to 200 characters" || !strings.Contains(got.Description, "Your own ID for a customer") {
			t.Errorf("identity: %+v", got)
		}
		if got := event.field("amountNanocredits"); !strings.Contains(got.Description, "callback") || !strings.Contains(got.Rule, "at most 19") {
			t.Errorf("amountNanocredits: %+v", got)
		}
		if got := event.field("quantity"); got.Default != "1" || got.Rule != "more than 0, at most 9007199254740991" {
			t.Errorf("quantity: %+v", got)
		}
		if got := find("createFeature").field("pricingMode"); strings.Join(got.Values, " ") != "fixed callback" || got.Default != `"fixed"` {
			t.Errorf("pricingMode: %+v", got)
		}
	})

	t.Run("opens what is nested", func(t *testing.T) {
		if got := find("createPlan").field("featureLimits"); got.Type != "list of objects" || len(got.Fields) != 4 || got.Fields[0].Name != "featureKey" {
			t.Errorf("featureLimits: %+v", got)
		}
		if got := find("getSubscription").Answers[0].Fields; len(got) < 8 || got[0].Name != "id" {
			t.Errorf("a subscription that may be null: %+v", got)
		}
	})

	t.Run("keeps the order of the document", func(t *testing.T) {
		if op := find("createCredit"); op.Body[0].Name != "key" || op.Body[1].Name != "name" || op.Body[2].Name != "unit" {
			t.Errorf("%+v", op.Body)
		}
	})
}

func TestCurl(t *testing.T) {
	t.Parallel()
	reference := readOurs(t)
	for id, want := range map[string]string{
		"getOpenapi":   `curl 'https://purser.example/v1/openapi.json'`,
		"getCredit":    "curl 'https://purser.example/v1/credits/tokens' \\\n  -H \"Authorization: Bearer $PURSER_KEY\"",
		"listDeposits": "curl 'https://purser.example/v1/deposits?identity=user_4821' \\\n  -H \"Authorization: Bearer $PURSER_KEY\"",
		"updateCredit": "curl -X PATCH 'https://purser.example/v1/credits/tokens' \\\n  -H \"Authorization: Bearer $PURSER_KEY\" \\\n" +
			`  --json '{"expectedRevision": 1, "name": "AI tokens"}'`,
	} {
		op := reference.find(t, id)
		if got := op.Curl("https://purser.example"); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", id, got, want)
		}
	}
	for _, group := range reference.Groups {
		for _, op := range group.Operations {
			if strings.ContainsAny(op.address, "'{}") || strings.Contains(op.BodyExample, "'") {
				t.Errorf("%s: the shell would take the command apart:\n%s", op.ID, op.Curl(""))
			}
		}
	}
}

func TestReadReferenceRefuses(t *testing.T) {
	t.Parallel()
	for name, document := range map[string]string{
		"a reference to nothing": `{"tags":[{"name":"A"}],"paths":{"/a":{"get":{"tags":["A"],"operationId":"a",
			"responses":{"200":{"$ref":"#/components/responses/Missing"}}}}}}`,
		"a reference to itself": `{"loop":{"$ref":"#/loop"},"paths":{"/a":{"get":{"tags":["A"],"operationId":"a","responses":{"200":{"$ref":"#/loop"}}}}}}`,
		"a status in words":     `{"paths":{"/a":{"get":{"tags":["A"],"operationId":"a","responses":{"default":{"description":"x"}}}}}}`,
	} {
		root, err := openapi.Parse([]byte(document))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ReadReference(root); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

func TestShowJSON(t *testing.T) {
	t.Parallel()
	root, err := openapi.Parse([]byte(`{"short": {"b": 1, "a": ["<x>", null, true]}, "long": [{"name": "` + strings.Repeat("x", 70) + `"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if got := showJSON(root.Get("short")); got != `{"b": 1, "a": ["<x>", null, true]}` {
		t.Error(got)
	}
	want := "[\n  {\n    \"name\": \"" + strings.Repeat("x", 70) + "\"\n  }\n]"
	if got := showJSON(root.Get("long")); got != want {
		t.Error(got)
	}
}
