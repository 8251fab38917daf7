package web

import (
	"bytes"
	"crypto/rand"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"purser/fault"
	"purser/ids"
	"purser/keys"
	"purser/store"
	"purser/store/people"
	"purser/store/storetest"
	"purser/tenancy"
	"purser/web/site"
)

var (
	secretText = regexp.MustCompile(`psr_(?:live|test)_[0-9A-Za-z]{49}`)
	keyIDField = regexp.MustCompile(`name="id" value="(key_[0-9a-z]{26})"`)
)

// keyFields fills the form of a new key in, with the id that the page brings.
func keyFields(t *testing.T, b *browser, preset keys.Preset, permissions ...string) url.Values {
	t.Helper()
	opened := b.get(t, b.harness.appPath("keys", "new"))
	match := keyIDField.FindStringSubmatch(opened.body)
	if opened.status != http.StatusOK || match == nil {
		t.Fatalf("the form answers %d, and has an id: %t", opened.status, match != nil)
	}
	return url.Values{"id": {match[1]}, "name": {"Billing worker"}, "preset": {string(preset)}, "permissions": permissions, "lifetime": {"none"}}
}

// makeKey makes a key by hand, and gives it with its secret.
func makeKey(t *testing.T, b *browser, preset keys.Preset, permissions ...string) (keys.APIKey, string) {
	t.Helper()
	reply := b.post(t, b.harness.appPath("keys", "new"), keyFields(t, b, preset, permissions...))
	secret := secretText.FindString(reply.body)
	if reply.status != http.StatusOK || secret == "" {
		t.Fatalf("status %d, a secret: %t", reply.status, secret != "")
	}
	return b.harness.keyOf(t, secret), secret
}

// keyOf is the key that a secret opens.
func (r *harness) keyOf(t *testing.T, text string) keys.APIKey {
	t.Helper()
	secret, err := keys.Parse(text)
	noError(t, err)
	address, err := r.db.Directory().KeyByHash(t.Context(), secret.Hash())
	noError(t, err)
	key, err := r.db.App(address.Scope).Key(t.Context(), address.KeyID)
	noError(t, err)
	return key
}

func (r *harness) keys(t *testing.T) []keys.APIKey {
	t.Helper()
	list, _, err := r.db.App(r.app.Scope()).Keys(t.Context(), store.Page{Limit: 100})
	noError(t, err)
	return list
}

// lastAction is the newest line of the organization's audit log.
func (r *harness) lastAction(t *testing.T) (action, target, text string) {
	t.Helper()
	list, _, err := r.db.Org(r.org.ID).AuditLog(t.Context(), people.AuditPage{Limit: 1})
	noError(t, err)
	if len(list) == 0 {
		t.Fatal("the audit log is empty")
	}
	return list[0].Action, list[0].Target, list[0].Before + list[0].After
}

func TestASecretIsShownOnce(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	r := newHarnessOn(t, Options{Options: site.Options{Store: storetest.Open(t), Log: slog.New(slog.NewTextHandler(&log, nil))}})
	b := r.join(t, tenancy.Admin)
	fields := keyFields(t, b, keys.Ingestion)
	made := b.post(t, r.appPath("keys", "new"), fields)
	secret := secretText.FindString(made.body)

	t.Run("in the direct reply to the form, which nothing stores or packs", func(t *testing.T) {
		if made.status != http.StatusOK || made.location != "" || strings.Count(made.body, secret) != 1 || secret == "" {
			t.Errorf("status %d, location %q, %d times", made.status, made.location, strings.Count(made.body, secret))
		}
		if made.header.Get("Cache-Control") != "no-store" || made.header.Get("Content-Encoding") != "" {
			t.Errorf("headers %v", made.header)
		}
		if !strings.Contains(made.body, "data-once") {
			t.Error("the script does not know that it has to take the secret out of the page")
		}
	})

	t.Run("and opens the key that was asked for", func(t *testing.T) {
		key := r.keyOf(t, secret)
		if key.ID.Format(ids.APIKey) != r.createdBy(t, fields) || key.ID.Format(ids.APIKey) == fields.Get("id") || key.Name != "Billing worker" || key.Preset != keys.Ingestion ||
			key.CreatedBy != b.user.ID || key.Scope != r.app.Scope() || key.ExpiresAt != 0 {
			t.Errorf("it is %+v", key)
		}
	})

	t.Run("and not again when the form is sent again", func(t *testing.T) {
		again := b.post(t, r.appPath("keys", "new"), fields)
		if again.status != http.StatusConflict || secretText.MatchString(again.body) || !strings.Contains(again.body, "already exists") {
			t.Errorf("status %d, a secret: %t", again.status, secretText.MatchString(again.body))
		}
		if list := r.keys(t); len(list) != 1 {
			t.Errorf("there are %d keys", len(list))
		}
	})

	t.Run("and on no other page", func(t *testing.T) {
		for _, path := range []string{r.appPath("keys"), r.appPath("keys", "new"), r.appPath("keys", r.createdBy(t, fields)), r.orgPath("audit")} {
			if seen := b.get(t, path); strings.Contains(seen.body, secret) {
				t.Errorf("%s shows it", path)
			}
		}
	})

	t.Run("and is kept in no table, no session and no log", func(t *testing.T) {
		random := secret[len("psr_test_") : len("psr_test_")+43]
		if tables := storetest.TablesWith(t, storetest.URL(t), random); len(tables) > 0 {
			t.Errorf("it is in %v", tables)
		}
		if tables := storetest.TablesWith(t, storetest.URL(t), fields.Get("name")); len(tables) == 0 {
			t.Error("the look finds nothing at all")
		}
		if strings.Contains(log.String(), random) {
			t.Error("it is in the log")
		}
	})

	t.Run("and the log of deeds tells of it without it", func(t *testing.T) {
		action, target, text := r.lastAction(t)
		if action != "key.create" || target != r.createdBy(t, fields) || strings.Contains(text, secret) || !strings.Contains(text, "Billing worker") {
			t.Errorf("%s of %s: %s", action, target, text)
		}
	})
}

func TestMembersGrantOnlyWhatTheyHold(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	forged := func(b *browser, preset keys.Preset, permissions ...string) seen {
		return b.post(t, r.appPath("keys", "new"), url.Values{
			"id": {ids.New().Format(ids.APIKey)}, "name": {"Forged"}, "preset": {string(preset)}, "permissions": permissions, "lifetime": {"none"},
		})
	}

	t.Run("a developer makes no key, also by a forged form", func(t *testing.T) {
		developer := r.join(t, tenancy.Developer)
		if reply := forged(developer, keys.ReadOnly); reply.status != http.StatusForbidden {
			t.Errorf("status %d", reply.status)
		}
		if reply := developer.get(t, r.appPath("keys", "new")); reply.status != http.StatusForbidden {
			t.Errorf("status %d", reply.status)
		}
	})

	clerk := r.join(t, tenancy.Custom, tenancy.KeysRead, tenancy.KeysWrite, tenancy.EventsIngest)

	t.Run("the form offers only what one has", func(t *testing.T) {
		body := clerk.get(t, r.appPath("keys", "new")).body
		for value, offered := range map[string]bool{"events:ingest": true, "ingestion": true, "deposits:write": false, "setup": false, "read-only": false} {
			input := regexp.MustCompile(`<input[^>]* value="` + value + `"[^>]*>`).FindString(body)
			if input == "" || strings.Contains(input, " disabled") == offered {
				t.Errorf("%s is offered as %q", value, input)
			}
		}
	})

	t.Run("a forged form gets neither a preset nor a permission beyond it", func(t *testing.T) {
		for _, reply := range []seen{forged(clerk, keys.Setup), forged(clerk, keys.Custom, "events:ingest", "deposits:write")} {
			if reply.status != http.StatusForbidden || secretText.MatchString(reply.body) {
				t.Errorf("status %d", reply.status)
			}
		}
		if list := r.keys(t); len(list) != 0 {
			t.Errorf("%d keys were made", len(list))
		}
	})

	t.Run("nor a permission that only members have", func(t *testing.T) {
		admin := r.join(t, tenancy.Admin)
		if reply := forged(admin, keys.Custom, "keys:write"); reply.status == http.StatusOK || len(r.keys(t)) != 0 {
			t.Errorf("status %d, %d keys", reply.status, len(r.keys(t)))
		}
	})

	t.Run("nor the secret of a key that opens more, by rotating it", func(t *testing.T) {
		key, _ := makeKey(t, r.join(t, tenancy.Admin), keys.Setup)
		path := r.appPath("keys", key.ID.Format(ids.APIKey))
		if reply := clerk.post(t, path+"/rotate", url.Values{"overlap": {"none"}}); reply.status != http.StatusForbidden || secretText.MatchString(reply.body) {
			t.Errorf("status %d", reply.status)
		}
		if body := clerk.get(t, path).body; !strings.Contains(body, "deposits:write") || strings.Contains(body, path+"/rotate") {
			t.Error("the page offers it, or does not say why not")
		}
		if got := r.keys(t)[0]; got != key {
			t.Errorf("the key became %+v", got)
		}
	})
}

func TestTheFormOfANewKey(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.join(t, tenancy.Admin)

	t.Run("comes back with what was typed, and says what is wrong", func(t *testing.T) {
		fields := keyFields(t, b, keys.Custom)
		fields.Set("name", strings.Repeat("ü", 121))
		reply := b.post(t, r.appPath("keys", "new"), fields)
		if reply.status != http.StatusUnprocessableEntity || !strings.Contains(reply.body, strings.Repeat("ü", 121)) ||
			!strings.Contains(reply.body, fields.Get("id")) {
			t.Errorf("status %d", reply.status)
		}
		for _, problem := range []string{"must be 120 characters or fewer", "Select at least one permission", `href="#field-name"`, `href="#field-permissions"`} {
			if !strings.Contains(reply.body, problem) {
				t.Errorf("%q is missing", problem)
			}
		}
	})

	t.Run("refuses an id that is none", func(t *testing.T) {
		for _, id := range []string{"", "key_", "app_01h455vb4pex5vsknk084sn02q", "key_" + strings.Repeat("0", 26)} {
			reply := b.post(t, r.appPath("keys", "new"), url.Values{"id": {id}, "name": {"A"}, "preset": {"setup"}, "lifetime": {"none"}})
			if reply.status != http.StatusUnprocessableEntity || len(r.keys(t)) != 0 {
				t.Errorf("%q: status %d", id, reply.status)
			}
		}
	})

	t.Run("ignores boxes that were ticked for another preset", func(t *testing.T) {
		key, _ := makeKey(t, b, keys.Ingestion, "deposits:write")
		if key.Permissions != keys.Ingestion.Permissions() {
			t.Errorf("it may %s", key.Permissions)
		}
	})

	t.Run("offers an end, an earlier one to full access", func(t *testing.T) {
		for preset, want := range map[string]string{"": `value="365d" selected`, "?preset=setup": `value="90d" selected`} {
			wantTexts(t, b.get(t, r.appPath("keys", "new")+preset).body, want)
		}
	})

	t.Run("gives a key the end that was chosen", func(t *testing.T) {
		fields := keyFields(t, b, keys.ReadOnly)
		fields.Set("lifetime", "90d")
		key := r.keyOf(t, secretText.FindString(b.post(t, r.appPath("keys", "new"), fields).body))
		if key.ExpiresAt-key.CreatedAt != 90*(24*time.Hour).Milliseconds() {
			t.Errorf("it lives %d ms", key.ExpiresAt-key.CreatedAt)
		}
	})

	t.Run("asks for the password again when it was typed long ago", func(t *testing.T) {
		slow := newHarness(t)
		late := slow.join(t, tenancy.Owner)
		slow.site.Now = func() int64 { return time.Now().Add(reauthAfter + time.Second).UnixMilli() }
		for _, reply := range []seen{
			late.get(t, slow.appPath("keys", "new")),
			late.post(t, slow.appPath("keys", "new"), url.Values{"id": {ids.New().Format(ids.APIKey)}, "name": {"A"}, "preset": {"setup"}, "lifetime": {"none"}}),
		} {
			if reply.status != http.StatusSeeOther || !strings.HasPrefix(reply.location, "/confirm") {
				t.Errorf("status %d, to %q", reply.status, reply.location)
			}
		}
		if list := slow.keys(t); len(list) != 0 {
			t.Errorf("%d keys were made", len(list))
		}
	})
}

func TestRotatingAKey(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.join(t, tenancy.Admin)
	old, oldSecret := makeKey(t, b, keys.Ingestion)
	path := r.appPath("keys", old.ID.Format(ids.APIKey))
	reply := b.post(t, path+"/rotate", url.Values{"overlap": {"24h"}})
	secret := secretText.FindString(reply.body)

	t.Run("shows the replacement once, and leaves the old key for the overlap", func(t *testing.T) {
		if reply.status != http.StatusOK || secret == "" || secret == oldSecret || reply.header.Get("Cache-Control") != "no-store" {
			t.Fatalf("status %d", reply.status)
		}
		next, was := r.keyOf(t, secret), r.keyOf(t, oldSecret)
		if next.Replaces != old.ID || next.Permissions != old.Permissions || was.ReplacedBy != next.ID || was.Revoked ||
			was.RevokedAt-next.CreatedAt != (24*time.Hour).Milliseconds() {
			t.Errorf("the old one is %+v, the new one %+v", was, next)
		}
	})

	t.Run("leads a form that is sent again to the replacement", func(t *testing.T) {
		again := b.post(t, path+"/rotate", url.Values{"overlap": {"24h"}})
		if again.status != http.StatusConflict || secretText.MatchString(again.body) || len(r.keys(t)) != 2 {
			t.Errorf("status %d, %d keys", again.status, len(r.keys(t)))
		}
	})

	t.Run("shows that the old key is used on", func(t *testing.T) {
		const sign = "Still in use"
		if body := b.get(t, r.appPath("keys")).body; strings.Contains(body, sign) {
			t.Error("it was not used yet")
		}
		_, err := r.db.App(r.app.Scope()).UseKey(t.Context(), old.ID, r.site.Now()+1)
		noError(t, err)
		if body := b.get(t, r.appPath("keys")).body; strings.Count(body, sign) != 1 {
			t.Errorf("the list shows it %d times", strings.Count(body, sign))
		}
		if body := b.get(t, path).body; !strings.Contains(body, "This key is still in use") {
			t.Error("its page does not show it")
		}
	})

	t.Run("is in the audit log", func(t *testing.T) {
		if action, target, text := r.lastAction(t); action != "key.rotate" || target != old.ID.Format(ids.APIKey) || strings.Contains(text, secret) {
			t.Errorf("%s of %s: %s", action, target, text)
		}
	})

	t.Run("refuses an overlap that is not offered", func(t *testing.T) {
		another, _ := makeKey(t, b, keys.Ingestion)
		reply := b.post(t, r.appPath("keys", another.ID.Format(ids.APIKey))+"/rotate", url.Values{"overlap": {"10y"}})
		if reply.status != http.StatusUnprocessableEntity || secretText.MatchString(reply.body) {
			t.Errorf("status %d", reply.status)
		}
	})
}

func TestARotatedKeyWorksNoLongerThanUntilItExpires(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.join(t, tenancy.Admin)
	for _, overlap := range []keys.Overlap{keys.OneWeek, keys.UntilRevoked} {
		expires := time.UnixMilli(r.site.Now()).UTC().Add(48 * time.Hour)
		spec := keys.Spec{ID: ids.New(), App: r.app, Name: "Server", Preset: keys.Ingestion, ExpiresAt: expires.UnixMilli()}
		old, _, err := keys.New(spec, tenancy.AllPermissions(), expires.Add(-30*24*time.Hour).UnixMilli(), rand.Reader)
		noError(t, err)
		noError(t, r.db.App(r.app.Scope()).CreateKey(t.Context(), old))
		path := r.appPath("keys", old.ID.Format(ids.APIKey))
		if body := b.get(t, path).body; !strings.Contains(body, "It still expires on "+expires.Format("2 Jan 2006, 15:04 UTC")) {
			t.Errorf("the form for %s leaves out when the key expires", overlap)
		}
		body := b.post(t, path+"/rotate", url.Values{"overlap": {string(overlap)}}).body
		_, body, _ = strings.Cut(body, "Previous key")
		if end := expires.Format("2006-01-02T15:04:05.000Z"); !strings.Contains(body, end) || !strings.Contains(body, "</code> works until <time") || !strings.Contains(body, "</time>. It expires then.") {
			t.Errorf("after %s, the page leaves out that the old key ends at %s", overlap, end)
		}
		_, err = r.db.App(r.app.Scope()).UseKey(t.Context(), old.ID, r.site.Now()+1)
		noError(t, err)
		_, body, _ = strings.Cut(b.get(t, path).body, "This key is still in use")
		if body, _, _ = strings.Cut(body, "Key details"); !strings.Contains(body, expires.Format("2006-01-02T15:04:05.000Z")) {
			t.Errorf("after %s, the warning leaves out when the key ends", overlap)
		}
		if body := b.get(t, r.appPath()).body; strings.Contains(body, "Rotate key") {
			t.Errorf("after %s, the overview asks for a second rotation", overlap)
		}
	}
}

// A key's last day is that of the viewer, as on the key's own page.
func TestTheDayAKeyExpiresIsThatOfTheViewer(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.join(t, tenancy.Admin)
	soon := time.UnixMilli(r.site.Now()).UTC().Add(72 * time.Hour)
	expires := time.Date(soon.Year(), soon.Month(), soon.Day(), 12, 0, 0, 0, time.UTC)
	spec := keys.Spec{ID: ids.New(), App: r.app, Name: "Server", Preset: keys.Ingestion, ExpiresAt: expires.UnixMilli()}
	key, _, err := keys.New(spec, tenancy.AllPermissions(), expires.Add(-30*24*time.Hour).UnixMilli(), rand.Reader)
	noError(t, err)
	noError(t, r.db.App(r.app.Scope()).CreateKey(t.Context(), key))
	for zone, day := range map[string]time.Time{"": expires, "Pacific/Kiritimati": expires.Add(14 * time.Hour), "Pacific/Niue": expires.Add(-11 * time.Hour)} {
		b.cookies["zone"] = &http.Cookie{Name: "zone", Value: zone}
		want := day.Format("2 Jan 2006")
		for page, text := range map[string]string{r.appPath(): "expires on " + want, r.appPath("keys"): ">" + want + "</time>"} {
			if got := b.get(t, page); !strings.Contains(got.body, text) {
				t.Errorf("%s in %q leaves out %s", page, zone, text)
			}
		}
	}
}

func TestRevokingAKey(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.join(t, tenancy.Admin)

	t.Run("stops it", func(t *testing.T) {
		key, _ := makeKey(t, b, keys.Ingestion)
		reply := b.post(t, r.appPath("keys", key.ID.Format(ids.APIKey), "revoke"), nil)
		if reply.status != http.StatusSeeOther || reply.location != r.appPath("keys") {
			t.Errorf("status %d, to %s", reply.status, reply.location)
		}
		_, err := r.db.App(r.app.Scope()).UseKey(t.Context(), key.ID, r.site.Now())
		wantFault(t, err, fault.RevokedAPIKey)
		if action, target, _ := r.lastAction(t); action != "key.revoke" || target != key.ID.Format(ids.APIKey) {
			t.Errorf("the log says %s of %s", action, target)
		}
	})

	t.Run("asks for its name in a live application", func(t *testing.T) {
		r := newHarness(t)
		r.app = r.newApplication(t, r.org, "Shop", true)
		b := r.join(t, tenancy.Admin)
		key, _ := makeKey(t, b, keys.Ingestion)
		path := r.appPath("keys", key.ID.Format(ids.APIKey), "revoke")
		for _, typed := range []string{"", "billing worker"} {
			reply := b.post(t, path, url.Values{"confirm": {typed}})
			if reply.status != http.StatusUnprocessableEntity || !strings.Contains(reply.body, `<a href="#field-confirm">The name doesn&#39;t match`) {
				t.Errorf("%q: status %d", typed, reply.status)
			}
		}
		if r.keys(t)[0].Revoked {
			t.Fatal("it was revoked")
		}
		if reply := b.post(t, path, url.Values{"confirm": {"Billing worker"}}); reply.status != http.StatusSeeOther || !r.keys(t)[0].Revoked {
			t.Errorf("status %d", reply.status)
		}
	})

	t.Run("takes a name as the page shows it", func(t *testing.T) {
		r := newHarness(t)
		r.app = r.newApplication(t, r.org, "Shop", true)
		b := r.join(t, tenancy.Admin)
		fields := keyFields(t, b, keys.Ingestion)
		fields.Set("name", "Billing  wor\u200bker\u00a0two")
		b.post(t, r.appPath("keys", "new"), fields)
		path := r.appPath("keys", r.keys(t)[0].ID.Format(ids.APIKey), "revoke")
		if reply := b.post(t, path, url.Values{"confirm": {"Billing worker two"}}); reply.status != http.StatusSeeOther || !r.keys(t)[0].Revoked {
			t.Errorf("status %d", reply.status)
		}
	})

	t.Run("does not reach another application's key", func(t *testing.T) {
		elsewhere := newHarness(t)
		theirs, _ := makeKey(t, elsewhere.join(t, tenancy.Admin), keys.Ingestion)
		id := theirs.ID.Format(ids.APIKey)
		for _, reply := range []seen{
			b.get(t, r.appPath("keys", id)),
			b.post(t, r.appPath("keys", id, "revoke"), nil),
			b.post(t, r.appPath("keys", id, "rotate"), url.Values{"overlap": {"none"}}),
		} {
			if reply.status != http.StatusNotFound {
				t.Errorf("status %d", reply.status)
			}
		}
		if got := elsewhere.keys(t)[0]; got != theirs {
			t.Errorf("it became %+v", got)
		}
	})
}

// createdBy is the id of the key that a form creates.
func (r *harness) createdBy(t *testing.T, form url.Values) string {
	t.Helper()
	number, err := ids.Parse(ids.APIKey, form.Get("id"))
	noError(t, err)
	for _, key := range r.keys(t) {
		if [6]byte(key.ID[:6]) == [6]byte(number[:6]) { // the id has the form's time
			return key.ID.Format(ids.APIKey)
		}
	}
	t.Fatalf("no key of the form %s", form.Get("id"))
	return ""
}
