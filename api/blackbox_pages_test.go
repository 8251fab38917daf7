package api_test

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"purser/keys"
)

// lister is one of the lists, with a way to add to it.
type lister struct {
	name string
	path string // with what the list needs of a query
	max  int
	add  func(tn *tenant) (name string) // gives the value of the field that names an item
	by   string                         // that field
}

const listedHolder = holderMark + "listed"

var listers = []lister{
	{"credits", "/v1/credits?", 100, func(tn *tenant) string {
		key := "k-" + newName()
		tn.credit(key)
		return key
	}, "key"},
	{"features", "/v1/features?", 100, func(tn *tenant) string {
		key := "k-" + newName()
		tn.feature(key, "gold", nil)
		return key
	}, "key"},
	{"plans", "/v1/plans?", 100, func(tn *tenant) string {
		key := "k-" + newName()
		tn.plan(key, nil)
		return key
	}, "key"},
	{"wallets", "/v1/wallets?", 25, func(tn *tenant) string {
		identity := newHolder()
		tn.post("/v1/wallets", fields{"identity": identity}).is(201)
		return identity
	}, "identity"},
	{"deposits", "/v1/deposits?identity=" + listedHolder + "&", 100, func(tn *tenant) string {
		return tn.deposit(listedHolder, "gold", "1").object()["deposit"].(fields)["id"].(string)
	}, "id"},
	{"events", "/v1/events?", 100, func(tn *tenant) string {
		tn.post("/v1/features", newFeature("listed", fields{"costNanocredits": "0"})) // the first time
		id := newName()
		tn.post("/v1/events", fields{"id": id, "identity": listedHolder, "feature": "listed"}).is(201)
		return id
	}, "id"},
	{"journal", "/v1/wallets/" + listedHolder + "/journal?", 100, func(tn *tenant) string {
		return tn.deposit(listedHolder, "gold", "1").object()["deposit"].(fields)["id"].(string)
	}, "id"},
}

func TestListersCoverTheDocument(t *testing.T) {
	t.Parallel()
	for _, op := range describedOperations(t) {
		listed := slices.ContainsFunc(listers, func(l lister) bool {
			return strings.HasPrefix(l.path, strings.ReplaceAll(op.Path, "{identity}", listedHolder)+"?")
		})
		if slices.Contains(op.Query, "cursor") && !listed && op.ID != "getUsage" { // rows of usage have no ids; TestUsageIsGrouped
			t.Errorf("%s has no lister: add one", op.ID)
		}
	}
}

// eachList runs a claim for every list, in an application of its own that has
// so many items. The credit that features and deposits need is in it too.
func eachList(t *testing.T, items int, claim func(t *testing.T, tn *tenant, l lister, newestFirst []string)) {
	for _, l := range listers {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			tn := newTenant(t)
			tn.credit("gold")
			var names []string
			if l.name == "credits" {
				names = []string{"gold"}
			}
			for len(names) < items {
				names = append([]string{l.add(tn)}, names...)
			}
			claim(t, tn, l, names)
		})
	}
}

// page reads one page: the names on it and the cursor, empty on the last.
func (tn *tenant) page(l lister, query string) (names []string, cursor string) {
	tn.t.Helper()
	got := tn.get(l.path + query).is(200).object()
	for _, item := range got["data"].([]any) {
		names = append(names, item.(fields)[l.by].(string))
	}
	cursor, _ = got["cursor"].(string)
	return names, cursor
}

func sameNames(t *testing.T, what string, got, want []string) {
	t.Helper()
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%s:\n got %q\nwant %q", what, got, want)
	}
}

func TestPagesAreNewestFirst(t *testing.T) {
	t.Parallel()
	eachList(t, 12, func(t *testing.T, tn *tenant, l lister, all []string) {
		ten, cursor := tn.page(l, "")
		sameNames(t, "without a limit there are ten", ten, all[:10])
		rest, end := tn.page(l, "cursor="+cursor)
		sameNames(t, "the rest", rest, all[10:])
		if end != "" {
			t.Errorf("the last page has the cursor %s", end)
		}
		for _, limit := range []int{1, 2, 11, 12, 13, l.max} {
			got, cursor := tn.page(l, fmt.Sprintf("limit=%d", limit))
			sameNames(t, fmt.Sprintf("limit %d", limit), got, all[:min(limit, 12)])
			if more := limit < 12; more != (cursor != "") {
				t.Errorf("limit %d has the cursor %q", limit, cursor)
			}
		}
	})
}

func TestPagesAreNotLongerThanTheirLimit(t *testing.T) {
	t.Parallel()
	eachList(t, 102, func(t *testing.T, tn *tenant, l lister, all []string) {
		got, cursor := tn.page(l, fmt.Sprintf("limit=%d", l.max))
		sameNames(t, "the longest page", got, all[:l.max])
		if cursor == "" {
			t.Error("there is no cursor to the rest")
		}
		tn.get(fmt.Sprintf("%slimit=%d", l.path, l.max+1)).refused("invalid_request")
	})
}

func TestPagesAreEmptyWithoutItems(t *testing.T) {
	t.Parallel()
	tn := newTenant(t)
	for _, l := range listers {
		if l.name == "journal" { // of a wallet without entries
			tn.post("/v1/wallets", fields{"identity": listedHolder}).is(201)
		}
		tn.get(l.path).is(200).has(fields{"data": []fields{}, "cursor": nil})
	}
}

func TestWalkSeesEachItemOnceWhileOthersAreAdded(t *testing.T) {
	t.Parallel()
	eachList(t, 11, func(t *testing.T, tn *tenant, l lister, all []string) {
		var walked []string
		cursor := ""
		for first := true; first || cursor != ""; first = false {
			query := "limit=2"
			if !first {
				query += "&cursor=" + cursor
			}
			var names []string
			names, cursor = tn.page(l, query)
			walked = append(walked, names...)
			l.add(tn)
			l.add(tn)
		}
		sameNames(t, "the walk", walked, all)
	})
}

func TestCursorOpensOnlyWhereItWasMade(t *testing.T) {
	t.Parallel()
	tn, otherTenant := newTenant(t), newTenant(t)
	cursors := map[string]string{}
	for _, caller := range []*tenant{tn, otherTenant} {
		caller.credit("gold")
		for _, l := range listers {
			l.add(caller)
			l.add(caller)
			if _, cursor := caller.page(l, "limit=1"); caller == tn {
				cursors[l.name] = cursor
			}
		}
	}
	for _, l := range listers {
		t.Run("of "+l.name, func(t *testing.T) {
			c, own := tn.in(t), cursors[l.name]
			c.get(l.path + "cursor=" + own).is(200)
			c.get(l.path + "limit=1&cursor=" + own).is(200)
			otherTenant.in(t).get(l.path + "cursor=" + own).refused("invalid_request")
			for other, cursor := range cursors {
				if other != l.name {
					c.get(l.path + "cursor=" + cursor).refused("invalid_request")
				}
			}
			for what, cursor := range forged(t, own) {
				if got := c.get(l.path + "cursor=" + url.QueryEscape(cursor)); got.status != 400 {
					t.Errorf("a cursor %s is answered with %d", what, got.status)
				}
			}
		})
	}
	t.Run("of deposits, only with the same filter", func(t *testing.T) {
		c, own := tn.in(t), "&cursor="+cursors["deposits"]
		c.get("/v1/deposits?identity=" + listedHolder + own).is(200)
		c.get("/v1/deposits?identity=" + listedHolder + "&creditKey=gold" + own).refused("invalid_request")
		c.get("/v1/deposits?identity=" + newHolder() + own).refused("invalid_request")
	})
	t.Run("and by another key of the application too", func(t *testing.T) {
		c := tn.in(t).with(tn.newKey(keys.Spec{Preset: keys.ReadOnly}).secret)
		for _, l := range listers {
			c.get(l.path + "cursor=" + cursors[l.name]).is(200)
		}
	})
}

// forged are cursors that no response had.
func forged(t testing.TB, real string) map[string]string {
	t.Helper()
	sealed, err := base64.RawURLEncoding.DecodeString(real)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{
		"with a letter more":  real + "A",
		"with its last cut":   real[:len(real)-1],
		"with its first cut":  real[1:],
		"padded":              real + "=",
		"in upper case":       strings.ToUpper(real),
		"with a space":        " " + real,
		"with a newline":      real[:4] + "\n" + real[4:],
		"twice":               real + real,
		"of zeros":            base64.RawURLEncoding.EncodeToString(make([]byte, len(sealed))),
		"of one letter":       "A",
		"of the longest kind": strings.Repeat("A", 4096),
		"past the longest":    strings.Repeat("A", 4097),
		"that is empty":       "",
		"of emoji":            "😀",
		"that is null":        "null",
		"with NUL":            "\x00" + real,
		"that is an id":       "wal_01jb8v3k9xf6tq2m4n5p7r8s0w",
	}
	for i := range sealed {
		flipped := append([]byte{}, sealed...)
		flipped[i] ^= 1
		all[fmt.Sprintf("with byte %d changed", i)] = base64.RawURLEncoding.EncodeToString(flipped)
	}
	for n := range sealed {
		all[fmt.Sprintf("cut to %d bytes", n)] = base64.RawURLEncoding.EncodeToString(sealed[:n])
	}
	return all
}

func TestListQueries(t *testing.T) {
	t.Parallel()
	tn := newTenant(t)
	for _, l := range listers {
		t.Run(l.name+" refuses what is no query of it", func(t *testing.T) {
			for _, query := range badListQueries(l.max) {
				tn.in(t).get(l.path + query).refused("invalid_request")
			}
		})
	}
}

func badListQueries(limit int) []string {
	return []string{
		"limit=0", "limit=-1", fmt.Sprintf("limit=%d", limit+1), "limit=", "limit", "limit=a", "limit=1.0", "limit=1e1", "limit=%2B1", "limit=+1",
		"limit=01", "limit=0x1", "limit=1%20", "limit=%201", "limit=1,2", "limit=9223372036854775807", "limit=9223372036854775808",
		"limit=99999999999999999999999", "limit=-0", "limit=1%00", "limit=%FF", "limit=NaN", "limit=true", "limit=null", "limit=%D9%A1",
		"limit=1&limit=1", "limit=1&limit=2", "limit[]=1", "limit%00=1",
		"cursor=", "cursor", "cursor=A", "cursor=A&cursor=A", "cursor=%00", "cursor=%FF", "cursor=null",
		"offset=1", "page=2", "Limit=1", "LIMIT=1", "Cursor=A", "appId=x", "orgId=x", "=1", "&&x", "limit=1;x=2", "limit=%zz", "%zz=1", "limit=1%", "%FF=1",
		"limit=1&stranger=1", "__proto__=1", "limit=1&%E2%80%8B=1",
	}
}
