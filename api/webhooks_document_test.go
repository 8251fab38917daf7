package api

import (
	"encoding/json"
	"testing"

	"purser/ids"
	"purser/notify"
)

// Each type of notification has a schema in the document, which its example data keeps.
func TestEveryNotificationIsDescribed(t *testing.T) {
	t.Parallel()
	root := expanded(t)
	hooks := root.Object("webhooks")
	if len(hooks) != len(notify.Types()) {
		t.Errorf("%d types are described, there are %d", len(hooks), len(notify.Types()))
	}
	c := newCompiler(asObject(root))
	for _, kind := range notify.Types() {
		media := hooks.Object(string(kind)).Object("post").Object("requestBody").Object("content").Object("application/json")
		s := c.schema(asObject(media.Object("schema")), string(kind))
		n := notify.New(kind, ids.New(), notify.Sample(kind), 1_767_225_660_000)
		n.Identity, n.Test = "user_4821", true
		message, err := n.Message(false, 0)
		if err != nil {
			t.Fatal(err)
		}
		object, err := decodeJSON(message, anything, false)
		if err != nil {
			t.Fatal(err)
		}
		if v := s.check(object); v != nil {
			t.Errorf("%s: %s %s: %s", kind, v.path, v.broken, message)
		}
		shown, err := json.Marshal(media.Object("example")["data"])
		if err != nil || len(shown) < 10 {
			t.Errorf("%s has no example: %s, %v", kind, shown, err)
		}
		if got, want := canonical(t, n.Data), canonical(t, shown); got != want {
			t.Errorf("%s: the test of an endpoint sends %s, the document has %s", kind, got, want)
		}
	}
	if err := c.err(); err != nil {
		t.Error(err)
	}
}

// canonical has the members in the order of their names.
func canonical(t *testing.T, text []byte) string {
	t.Helper()
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		t.Fatal(err)
	}
	sorted, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(sorted)
}
