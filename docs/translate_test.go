package docs

import (
	"strings"
	"testing"
)

func TestTranslate(t *testing.T) {
	t.Parallel()
	calls, ok := parseCurl(`curl "$PURSER_URL/v1/check" -H "Authorization: Bearer $PURSER_KEY" \
  --json '{"identity": "user-42", "feature": "chat",
           "late": true, "of": null}'
curl "$PURSER_URL/v1/wallets/user-42/journal?limit=2" -H "Authorization: Bearer $PURSER_KEY"`)
	if !ok {
		t.Fatal("the commands are not understood")
	}
	for language, want := range map[string]string{
		"python": `check = purser.post("/v1/check", {
    "identity": "user-42",
    "feature": "chat",
    "late": True,
    "of": None,
})
print(check)

journal = purser.get("/v1/wallets/user-42/journal?limit=2")
print(journal)`,
		"typescript": `const check = await purser.post("/v1/check", {
    identity: "user-42",
    feature: "chat",
    late: true,
    of: null,
});
console.log(check);

const journal = await purser.get("/v1/wallets/user-42/journal?limit=2");
console.log(journal);`,
		"go": `check, err := purser.Post(ctx, "/v1/check", map[string]any{
	"identity": "user-42",
	"feature":  "chat",
	"late":     true,
	"of":       nil,
})
if err != nil {
	return err
}
fmt.Println(string(check))

journal, err := purser.Get(ctx, "/v1/wallets/user-42/journal?limit=2")
if err != nil {
	return err
}
fmt.Println(string(journal))`,
	} {
		got, err := translate(language, calls)
		if err != nil || got != want {
			t.Errorf("%s: %v\n%s", language, err, got)
		}
	}

	for _, shellOnly := range []string{
		``,
		`PAGE=$(curl "$PURSER_URL/v1/plans" -H "Authorization: Bearer $PURSER_KEY")`,
		`curl -s "$PURSER_URL/v1/plans" -H "Authorization: Bearer $PURSER_KEY"`,
		`curl "$PURSER_URL/v1/plans"`,
		`curl "$PURSER_URL/v1/plans/$PLAN" -H "Authorization: Bearer $PURSER_KEY"`,
		`curl "$PURSER_URL/v1/check" -H "Authorization: Bearer $PURSER_KEY" --json '{"a": '"$B"'}'`,
		`curl "$PURSER_URL/v1/check" -H "Authorization: Bearer $PURSER_KEY" --json '{a: 1}'`,
		"curl \"$PURSER_URL/v1/plans\" -H \"Authorization: Bearer $PURSER_KEY\"\necho",
	} {
		if calls, ok := parseCurl(shellOnly); ok {
			t.Errorf("%s is taken as %+v", shellOnly, calls)
		}
	}
}

func TestVariants(t *testing.T) {
	t.Parallel()
	parse := func(t *testing.T, source string) []Block {
		t.Helper()
		guide, err := parseGuide([]byte("# Title\n\nA summary.\n\n"+source), nil)
		if err != nil {
			t.Fatal(err)
		}
		return guide.Body[1:]
	}
	keys := func(block Block) string {
		var keys []string
		for _, variant := range block.Code.Variants {
			keys = append(keys, variant.Language.Key)
		}
		return strings.Join(keys, " ")
	}
	const command = "```sh\ncurl \"$PURSER_URL/v1/plans\" -H \"Authorization: Bearer $PURSER_KEY\"\n```\n"

	t.Run("a plain command of a checked guide is translated", func(t *testing.T) {
		body := parse(t, CheckedMark+" x -->\n\n"+command)
		if keys(body[0]) != "curl typescript python go" || !body[0].Code.In(FindLanguage("go")).Client {
			t.Errorf("%+v", body[0].Code)
		}
		if body := parse(t, command); keys(body[0]) != "" {
			t.Errorf("an unchecked one too: %+v", body[0].Code)
		}
	})

	t.Run("blocks in different languages that follow each other are one", func(t *testing.T) {
		body := parse(t, CheckedMark+" x -->\n\n"+command+"\n```python\n1\n```\n\n```go\n2\n```\n\n```json\n{}\n```\n\nText.\n\n```python\n3\n```\n")
		if len(body) != 4 || keys(body[0]) != "curl python go" || body[0].Code.In(FindLanguage("go")).Text != "2" {
			t.Errorf("%+v", body)
		}
		if typescript := body[0].Code.In(FindLanguage("typescript")); typescript.Language.Key != "curl" {
			t.Errorf("a missing language shows %+v", typescript)
		}
	})
}

func TestReferenceIsTranslated(t *testing.T) {
	t.Parallel()
	for _, group := range readOurs(t).Groups {
		for _, op := range group.Operations {
			all, err := op.Variants("https://purser.example")
			if err != nil {
				t.Fatalf("%s: %v", op.ID, err)
			}
			if want := len(Languages); op.Permission != "" && len(all) != want || all[0].Text != op.Curl("https://purser.example") {
				t.Errorf("%s has %d variants", op.ID, len(all))
			}
			for _, variant := range all[1:] {
				if !strings.Contains(variant.Text, `"`+op.address) {
					t.Errorf("%s in %s:\n%s", op.ID, variant.Language.Name, variant.Text)
				}
			}
		}
	}
}
