package api_test

import (
	"bytes"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"purser/api"
	"purser/fault"
	"purser/ids"
	"purser/keys"
	"purser/tenancy"
)

// keyKind is a row of the matrix: with what a request comes.
type keyKind struct {
	name        string
	secret      func(own *tenant) string
	refusal     fault.Code // for every keyed operation
	permissions tenancy.Permissions
}

func keyKinds(t testing.TB) []keyKind {
	kinds := []keyKind{
		{name: "no key", refusal: fault.MissingAPIKey, secret: func(*tenant) string { return "" }},
		{name: "a malformed key", refusal: fault.InvalidAPIKey, secret: func(own *tenant) string { return own.key[:len(own.key)-1] + "!" }},
		{name: "an unknown key", refusal: fault.InvalidAPIKey, secret: func(*tenant) string { return mintSecret(t).Reveal() }},
		{name: "a revoked key", refusal: fault.RevokedAPIKey, secret: func(own *tenant) string {
			key := own.newKey(keys.Spec{Preset: keys.Setup})
			own.revoke(key)
			return key.secret
		}},
		{name: "an expired key", refusal: fault.ExpiredAPIKey, secret: func(own *tenant) string {
			return own.newKey(keys.Spec{Preset: keys.Setup, ExpiresAt: time.Now().Add(-time.Second).UnixMilli()}).secret
		}},
		{name: "a publishable key", refusal: fault.UnsupportedKeyKind, secret: func(*tenant) string {
			return "pub_test_" + strings.TrimPrefix(mintSecret(t).Reveal(), "psr_test_")
		}},
	}
	working := func(name string, permissions tenancy.Permissions, spec keys.Spec) {
		kinds = append(kinds, keyKind{name: name, permissions: permissions, secret: func(own *tenant) string { return own.newKey(spec).secret }})
	}
	for p := range tenancy.APIPermissions().Each() {
		alone := tenancy.PermissionsOf(p)
		working("only "+p.String(), alone, keys.Spec{Preset: keys.Custom, Custom: alone})
	}
	for _, preset := range []keys.Preset{keys.Setup, keys.Ingestion, keys.ReadOnly} {
		working("the preset "+string(preset), preset.Permissions(), keys.Spec{Preset: preset})
	}
	return kinds
}

// expected is the cell as the document has it.
func (k keyKind) expected(op api.Operation, worksAs outcome) outcome {
	switch {
	case op.Permission == "":
		return worksAs
	case k.refusal != "":
		return refusedWith(k.refusal)
	case !holdsAll(k.permissions, op.Permission):
		return refusedWith(fault.PermissionDenied)
	default:
		return worksAs
	}
}

// holdsAll reports whether the set has all permissions of an operation.
func holdsAll(held tenancy.Permissions, needed string) bool {
	all, err := tenancy.ParsePermissions(strings.Fields(needed))
	return err == nil && all.Within(held)
}

// namesOne reports whether a message names one of the permissions.
func namesOne(message, permissions string) bool {
	return slices.ContainsFunc(strings.Fields(permissions), func(p string) bool { return strings.Contains(message, p) })
}

// stocked is an application with something of everything, and what it is called.
type stocked struct {
	*tenant
	names names
}

func newStocked(t testing.TB, org string) stocked {
	t.Helper()
	tn := newTenantAt(t, sharedNode(t), org, false)
	s := stocked{tn, names{
		app: tn.app.ID.Format(ids.Application), credit: "c-" + newName(), feature: "f-" + newName(), plan: "p-" + newName(),
		identity: newHolder(), cursors: map[string]string{},
	}}
	tn.credit(s.names.credit)
	tn.credit("c-" + newName())
	tn.feature(s.names.feature, s.names.credit, nil)
	tn.feature("f-"+newName(), s.names.credit, nil)
	tn.send(request{method: "PUT", target: "/v1/alert-rules/" + s.names.credit, body: fields{"kind": "balance", "creditKey": s.names.credit, "thresholdsNanocredits": []string{"1"}}}).is(200)
	tn.plan(s.names.plan, nil)
	tn.plan("p-"+newName(), nil)
	tn.settle()
	tn.deposit(newHolder(), s.names.credit, "1")
	for range 2 { // a second page of each list
		tn.deposit(s.names.identity, s.names.credit, "1000000")
	}
	s.names.charged = newHolder()
	tn.deposit(s.names.charged, s.names.credit, "1000000")
	for range 2 {
		s.names.event = newName()
		tn.post("/v1/events", fields{"id": s.names.event, "identity": s.names.charged, "feature": s.names.feature, "quantity": 100}).is(201)
	}
	tn.number()
	s.names.notification = tn.get("/v1/notifications?limit=1").is(200).object()["data"].([]any)[0].(fields)["id"].(string)
	s.names.endpoint = tn.post("/v1/webhook-endpoints", newEndpoint()).is(201).text("id")
	for _, l := range listers {
		path := l.path
		switch l.name {
		case "deposits":
			path = "/v1/deposits?identity=" + s.names.identity + "&"
		case "journal":
			path = "/v1/wallets/" + s.names.identity + "/journal?"
		}
		s.names.cursors[l.name] = tn.get(path + "limit=1").is(200).text("cursor")
	}
	return s
}

func missingNames(like names) names {
	missing := names{
		app: ids.New().Format(ids.Application), credit: "c-" + newName(), feature: "f-" + newName(), plan: "p-" + newName(),
		identity: newHolder(), charged: newHolder(), event: newName(), cursors: map[string]string{},
		endpoint: ids.New().Format(ids.WebhookEndpoint), notification: ids.New().Format(ids.Notification),
	}
	for list, cursor := range like.cursors {
		last := "AA"
		if strings.HasSuffix(cursor, last) {
			last = "BA"
		}
		missing.cursors[list] = cursor[:len(cursor)-2] + last
	}
	return missing
}

func TestPermissionMatrix(t *testing.T) {
	t.Parallel()
	org := "Matrix " + newName()
	sibling, foreign := newStocked(t, org), newStocked(t, "Foreign "+newName())
	untouched := []map[string]string{sibling.shown(), foreign.shown()}
	var cells atomic.Int64
	t.Run("each operation", func(t *testing.T) {
		for _, kind := range keyKinds(t) {
			t.Run("with "+kind.name, func(t *testing.T) {
				t.Parallel()
				own := newStocked(t, org)
				row := matrixRow{client: own.in(t).with(kind.secret(own.tenant)), kind: kind, own: own.names}
				row.targets = []names{own.names, missingNames(own.names), sibling.names, foreign.names}
				row.run(t)
				cells.Add(int64(row.cells))
			})
		}
	})
	t.Run("leaves other applications alone", func(t *testing.T) {
		for i, other := range []stocked{sibling, foreign} {
			if !maps.Equal(other.shown(), untouched[i]) {
				t.Errorf("an application was changed with a key of another:\n%v\n%v", untouched[i], other.shown())
			}
		}
	})
	t.Logf("%d cells", cells.Load())
}

// shown is all that the application's own key sees.
func (s stocked) shown() map[string]string {
	all := map[string]string{}
	for _, target := range []string{"/v1/credits", "/v1/features", "/v1/plans", "/v1/wallets", "/v1/deposits?identity=" + s.names.identity, "/v1/application"} {
		all[target] = string(s.get(target).is(200).body)
	}
	return all
}

// matrixRow is all operations with one kind of key.
type matrixRow struct {
	client
	kind    keyKind
	own     names
	targets []names // own, missing, sibling, foreign
	cells   int
}

func (r *matrixRow) run(t *testing.T) {
	described := describedOperations(t)
	for _, op := range described {
		if !hasSample(op) {
			t.Errorf("%s has no sample: add one", op.ID)
		}
	}
	for _, s := range samples { // in their order
		at := slices.IndexFunc(described, func(op api.Operation) bool { return op.ID == s.operation })
		if at < 0 {
			t.Errorf("there is no operation %s", s.operation)
			continue
		}
		r.ask(t, described[at], s)
	}
}

// ask fills the cells of one sample: own, missing, sibling, foreign.
func (r *matrixRow) ask(t *testing.T, op api.Operation, s sample) {
	t.Helper()
	var answers []answer
	for i, target := range r.targets {
		requested := s.other
		if i == 0 {
			requested = s.own
		}
		want := r.kind.expected(op, requested)
		got := r.send(s.request(r.own, target))
		r.cells++
		// A refusal may repeat the caller's own words; beyond them it must not differ.
		words := strings.NewReplacer(target.credit, "…", target.feature, "…", target.plan, "…", target.identity, "…", target.app, "…")
		got.body = ofNow.ReplaceAll([]byte(words.Replace(string(got.body))), []byte(`"effectiveAt":0`))
		answers = append(answers, got)
		if got.status != want.status || want.code != "" && got.text("error") != string(want.code) {
			t.Errorf("%s with %s: got %d, want %d %s\n%s", op.ID, r.kind.name, got.status, want.status, want.code, got.body)
		}
		if want.code == fault.PermissionDenied && !namesOne(got.text("message"), op.Permission) {
			t.Errorf("%s with %s: the message does not name %s: %s", op.ID, r.kind.name, op.Permission, got.body)
		}
	}
	missing := answers[1]
	if s.makes && missing.status < 400 {
		return
	}
	for _, got := range answers[2:] {
		if !bytes.Equal(got.body, missing.body) || got.status != missing.status || !sameHeaders(got.header, missing.header) {
			t.Errorf("%s with %s tells what exists elsewhere:\n%v\n%s\n%v\n%s", op.ID, r.kind.name, missing.header, missing.body, got.header, got.body)
		}
	}
}

// ofNow is a time that every request moves.
var ofNow = regexp.MustCompile(`"effectiveAt":[0-9]+`)

// sameHeaders leaves out what differs for every request.
func sameHeaders(a, b http.Header) bool {
	plain := func(h http.Header) http.Header {
		h = h.Clone()
		h.Del("X-Request-Id")
		h.Del("Date")
		return h
	}
	return maps.EqualFunc(plain(a), plain(b), slices.Equal)
}
