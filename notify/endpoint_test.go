package notify

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"purser/fault"
	"purser/ids"
)

func TestEndpointURLs(t *testing.T) {
	t.Parallel()
	long := "https://example.com/" + strings.Repeat("a", MaxURL-len("https://example.com/"))
	for text, want := range map[string]struct{ live, test bool }{
		"https://example.com/hooks":       {true, true},
		"https://example.com:8443/?a=b":   {true, true},
		"https://example.com:/":           {true, true},
		"https://example.com:443/":        {true, true},
		"https://example.com:1024/":       {true, true},
		"https://example.com:1023/":       {},
		"https://example.com:1/":          {},
		"https://example.com:22/":         {},
		"https://example.com:25/":         {},
		"https://example.com:0443/":       {true, true},
		"https://example.com:80/":         {},
		"https://[2606:4700::1111]:25/":   {},
		"http://example.com:80/":          {false, true},
		"http://example.com:443/":         {},
		"http://localhost:25/":            {},
		"https://example.com:65535/":      {true, true},
		"https://example.com:0/":          {},
		"https://example.com:65536/":      {},
		"https://example.com:99999/":      {},
		"https://[2606:4700::1111]:65536": {},
		"https://[2606:4700::1111]/hooks": {true, true},
		long:                              {true, true},
		long + "a":                        {},
		"http://localhost:3000/hooks":     {false, true},
		"ftp://example.com":               {},
		"file:///etc/passwd":              {},
		"https://":                        {},
		"https://:443/":                   {},
		"https:example.com":               {},
		"//example.com/hooks":             {},
		"example.com/hooks":               {},
		"":                                {},
		"https://ann:secret@example.com/": {},
		"https://example.com/#part":       {true, true},
		"https://example.com/a b":         {},
		"https://example.com/a\\b":        {},
		"https://example.com\\@other.com": {},
		"https://example.com/\x7f":        {},
		"https://example.com/é":           {},
		"https://exämple.com/":            {},
		"HTTPS://example.com/hooks":       {true, true},
		"HTTP://example.com/hooks":        {false, true},
		"https://example.com/\r\nHost: x": {},
		"javascript:alert(1)":             {},
		"gopher://127.0.0.1:6379/_FLUSH":  {},
		"https://exa\x00mple.com":         {},
		"https://example.com/%zz":         {},
		"http+unix://%2Fvar%2Frun%2Fx/":   {},
		"unix:///var/run/docker.sock":     {},
	} {
		if got := CheckURL(text, true) == nil; got != want.live {
			t.Errorf("%q for a live application: %v", text, CheckURL(text, true))
		}
		if got := CheckURL(text, false) == nil; got != want.test {
			t.Errorf("%q for a test application: %v", text, CheckURL(text, false))
		}
	}
}

func TestEndpointChanges(t *testing.T) {
	t.Parallel()
	e := Endpoint{ID: ids.New(), URL: "https://example.com/", Status: Paused, PauseReason: PauseFailing, FailingSince: 5, Revision: 3}
	enabled, err := e.Apply(EndpointPatch{ExpectedRevision: new(int64(3)), Status: new(Enabled)}, true)
	if err != nil || enabled.Status != Enabled || enabled.PauseReason != "" || enabled.FailingSince != 0 || enabled.Revision != 4 {
		t.Errorf("enabled: %+v, %v", enabled, err)
	}
	paused, err := enabled.Apply(EndpointPatch{Status: new(Paused)}, true)
	if err != nil || paused.PauseReason != PauseRequested {
		t.Errorf("paused: %+v, %v", paused, err)
	}
	failing := enabled
	failing.FailingSince, failing.ResetAfter = 9, nil
	moved, err := failing.Apply(EndpointPatch{URL: new("https://example.org/")}, true)
	if err != nil || moved.FailingSince != 0 || moved.ResetAfter == nil || enabled.ResetAfter == nil || paused.ResetAfter != enabled.ResetAfter {
		t.Errorf("moved: %+v, %v", moved, err)
	}
	for _, patch := range []EndpointPatch{{Status: new(Paused)}, {Description: new("Mirror")}, {URL: new("https://example.com/")}} {
		healthy := enabled
		healthy.SucceededAt = 9
		if after, err := healthy.Apply(patch, true); err != nil || after.SucceededAt != 9 {
			t.Errorf("the same URL: %+v, %v", after, err)
		}
	}
	described, err := failing.Apply(EndpointPatch{Description: new("Mirror")}, true)
	if err != nil || described.FailingSince != 9 || described.ResetAfter != nil {
		t.Errorf("described: %+v, %v", described, err)
	}
	changed, err := e.Apply(EndpointPatch{Types: &[]Type{KeyRevoked, KeyRevoked}, Description: new("Mirror")}, true)
	if err != nil || !slices.Equal(changed.Types, []Type{KeyRevoked}) || changed.Description != "Mirror" || changed.Status != Paused || changed.PauseReason != PauseFailing {
		t.Errorf("changed: %+v, %v", changed, err)
	}
	same := EndpointPatch{URL: &changed.URL, Types: &[]Type{KeyRevoked, KeyRevoked}, Description: new("Mirror"), Status: new(Paused)}
	for name, patch := range map[string]EndpointPatch{"nothing": {}, "what it is": same} {
		if after, err := changed.Apply(patch, true); err != nil || !reflect.DeepEqual(after, changed) {
			t.Errorf("set to %s: %+v, %v", name, after, err)
		}
	}
	for name, c := range map[string]struct {
		patch EndpointPatch
		want  fault.Code
	}{
		"an old revision":   {EndpointPatch{ExpectedRevision: new(int64(2))}, fault.RevisionConflict},
		"http when live":    {EndpointPatch{URL: new("http://example.com")}, fault.InvalidRequest},
		"an unknown type":   {EndpointPatch{Types: &[]Type{"nothing"}}, fault.InvalidRequest},
		"disabling by hand": {EndpointPatch{Status: new(Disabled)}, fault.InvalidRequest},
		"an unknown status": {EndpointPatch{Status: new(EndpointStatus("gone"))}, fault.InvalidRequest},
		"too many types":    {EndpointPatch{Types: new(make([]Type, MaxTypes+1))}, fault.InvalidRequest},
	} {
		if after, err := e.Apply(c.patch, true); !fault.Is(err, c.want) || after.Revision != 3 {
			t.Errorf("%s: %+v, %v", name, after, err)
		}
	}
}

func TestSecretsDoNotPrint(t *testing.T) {
	t.Parallel()
	secret, err := NewSecret(bytes.NewReader(bytes.Repeat([]byte{7}, 64)))
	if err != nil {
		t.Fatal(err)
	}
	shown := secret.Reveal()
	again, err := ParseSecret(shown)
	if err != nil || again.Reveal() != shown || len(shown) != len("whsec_")+44 {
		t.Errorf("%d characters, %v", len(shown), err)
	}
	encoded, err := json.Marshal(struct{ S Secret }{secret})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{fmt.Sprint(secret), fmt.Sprintf("%+v %#v %s %q %x", secret, secret, secret, secret, secret), string(encoded)} {
		if strings.Contains(text, shown[6:]) || strings.Contains(text, "0707") || strings.Contains(text, "7 7 7") {
			t.Errorf("a secret prints as %s", text)
		}
	}
	for _, text := range []string{"", "whsec_", "whsec_AAAA", shown[6:], shown + "=", "whsec_" + strings.Repeat("!", 44)} {
		if _, err := ParseSecret(text); err == nil {
			t.Errorf("%q is a secret", text)
		}
	}
}

func TestMessageHasTheDocumentedForm(t *testing.T) {
	t.Parallel()
	id := ids.New()
	n := Notification{ID: id, Type: BalanceLow, Identity: "user-42", Data: []byte(`{"a": 1}`), CreatedAt: 1_794_753_300_000, Seq: 4711}
	got, err := n.Message(false, 4698)
	want := `{"id":"` + id.Format(ids.Notification) + `","seq":4711,"previousSeq":4698,"type":"balance.low","timestamp":"2026-11-15T14:35:00.000Z",` +
		`"createdAt":1794753300000,"live":false,"identity":"user-42","data":{"a":1}}`
	if err != nil || string(got) != want {
		t.Errorf("got %s, %v", got, err)
	}
}

// A new URL may accept nothing: its deliveries wait, whatever the previous one accepted.
func TestADeliveryDoesNotFailAtANewURLThatAcceptsNothing(t *testing.T) {
	t.Parallel()
	const accepted, now = 2000, 3000
	e := Endpoint{ID: ids.New(), URL: "https://example.com/", Status: Enabled, SucceededAt: accepted, Revision: 1}
	moved, err := e.Apply(EndpointPatch{URL: new("https://example.org/")}, true)
	if err != nil {
		t.Fatal(err)
	}
	last := Progress{Attempts: MaxAttempts, Refusals: MaxAttempts - 2, TriedBefore: now - 1, FailingSince: now - 1, SucceededAt: moved.SucceededAt}
	if v := Judge(last, Result{Status: 500}, now, 0); v.Status != Pending || v.DueAt <= now {
		t.Errorf("the last attempt: %+v", v)
	}
}
