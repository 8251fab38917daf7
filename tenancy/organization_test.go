package tenancy

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"purser/fault"
	"purser/ids"
)

func TestNewOrganization(t *testing.T) {
	id := ids.New()
	got, err := NewOrganization(id, "  Acme & Sons ", 42)
	if want := (Organization{ID: id, Slug: "acme-sons", Name: "Acme & Sons", CreatedAt: 42}); err != nil || got != want {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, err := NewOrganization(id, " ", 42); !fault.Is(err, fault.InvalidRequest) {
		t.Errorf("an organization without a name: %v", err)
	}
	renamed, err := got.Rename("Bolt")
	if err != nil || renamed.Name != "Bolt" || renamed.Slug != got.Slug {
		t.Errorf("renamed to %+v, %v", renamed, err)
	}
	if _, err := got.Rename("\x00"); !fault.Is(err, fault.InvalidRequest) {
		t.Errorf("renamed to NUL: %v", err)
	}
}

func TestApplication(t *testing.T) {
	org := Organization{ID: ids.New()}
	app, err := NewApplication(ids.New(), org, "Chat", true, 42)
	if err != nil {
		t.Fatal(err)
	}
	t.Run("belongs to its organization", func(t *testing.T) {
		if app.Scope() != (Scope{OrgID: org.ID, AppID: app.ID}) || !app.Live || app.Slug != "chat" || app.CreatedAt != 42 {
			t.Errorf("got %+v", app)
		}
	})
	t.Run("needs a name", func(t *testing.T) {
		if _, err := NewApplication(ids.New(), org, "", false, 42); !fault.Is(err, fault.InvalidRequest) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("changes its name and address, not its slug", func(t *testing.T) {
		got, err := app.Change("Talk", "https://talk.example:8443/a?b#c")
		if err != nil || got.Name != "Talk" || got.Slug != "chat" || got.DeploymentURL != "https://talk.example:8443/a?b#c" {
			t.Errorf("got %+v, %v", got, err)
		}
		if got, err = got.Change("Talk", ""); err != nil || got.DeploymentURL != "" {
			t.Errorf("the address stayed: %+v, %v", got, err)
		}
		if _, err := app.Change("", "https://talk.example"); !fault.Is(err, fault.InvalidRequest) {
			t.Errorf("without a name: %v", err)
		}
	})
	t.Run("takes an address of 2048 characters and none longer", func(t *testing.T) {
		longest := "http://localhost/" + strings.Repeat("a", maxURLLength-len("http://localhost/"))
		if _, err := app.Change("Chat", longest); err != nil {
			t.Error(err)
		}
		if _, err := app.Change("Chat", longest+"a"); !fault.Is(err, fault.InvalidRequest) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("refuses what is no address on the web", func(t *testing.T) {
		for _, text := range []string{
			"example.com", "/a", "//example.com", "javascript:alert(1)", "javascript://a/%0aalert(1)", "ftp://example.com",
			"https://", "https://:443", "https://me:secret@example.com", "https://example.com/a b", "https://example.com/\xff",
			"https://exämple.com", "https://example.com/\n", "https://example.com/<b>", " https://example.com",
		} {
			if _, err := app.Change("Chat", text); !fault.Is(err, fault.InvalidRequest) {
				t.Errorf("%q: %v", text, err)
			}
		}
	})
}

func TestParseName(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"takes one character":                         {"a", "a"},
		"drops the space around it":                   {"\t a  b \u00a0", "a  b"},
		"takes 120 characters of four bytes":          {strings.Repeat("🪙", 120), strings.Repeat("🪙", 120)},
		"does not count the space around it":          {strings.Repeat("a", 120) + " ", strings.Repeat("a", 120)},
		"takes joined emoji and right-to-left script": {"👩‍🚀 עברית", "👩‍🚀 עברית"},
		"refuses nothing at all":                      {"", ""},
		"refuses only space":                          {" \u2003 ", ""},
		"refuses 121 characters":                      {strings.Repeat("é", 121), ""},
		"refuses NUL":                                 {"a\x00b", ""},
		"refuses a line break":                        {"a\nb", ""},
		"refuses DEL":                                 {"a\x7f", ""},
		"refuses what turns text around":              {"a\u202eb", ""},
		"refuses a C1 control":                        {"a\u0080b", ""},
		"refuses broken UTF-8":                        {"a\xc3", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ParseName(c.text)
			if got != c.want || (c.want == "") != fault.Is(err, fault.InvalidRequest) {
				t.Errorf("ParseName(%q) = %q, %v", c.text, got, err)
			}
		})
	}
}

var slugForm = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

func TestSlug(t *testing.T) {
	for name, want := range map[string]string{
		"Acme":                         "acme",
		"Acme, Inc. (EU)":              "acme-inc-eu",
		"--a--b--":                     "a-b",
		"Müller & Söhne Straße":        "muller-sohne-strase",
		"ÀÿÆ÷þ":                        "aya-t",
		"日本":                           "organization",
		"🪙":                            "organization",
		"new":                          "new-organization",
		"New!":                         "new-organization",
		"newer":                        "newer",
		"../../etc":                    "etc",
		"a%2Fb?c#d":                    "a-2fb-c-d",
		strings.Repeat("ab ", 40):      "ab-ab-ab-ab-ab-ab-ab-ab-ab-ab-ab-ab-ab-a",
		strings.Repeat("a", 39) + " b": strings.Repeat("a", 39),
	} {
		if got := slugOf(name, "organization"); got != want {
			t.Errorf("the slug of %q is %q, want %q", name, got, want)
		}
	}
	for n, want := range map[int]string{2: "-2", 10: "-10", 123456: "-123456"} {
		got := NumberedSlug(strings.Repeat("a", maxSlugLength), n)
		if len(got) != maxSlugLength || !strings.HasSuffix(got, want) {
			t.Errorf("number %d is %q", n, got)
		}
	}
	if got := NumberedSlug("acme", 2); got != "acme-2" {
		t.Errorf("the second acme is %q", got)
	}
}

func TestSlugsFitIntoAddresses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.String().Draw(t, "name")
		slug := slugOf(name, "application")
		numbered := NumberedSlug(slug, rapid.IntRange(2, 1_000_000).Draw(t, "n"))
		for _, s := range []string{slug, numbered} {
			if !slugForm.MatchString(s) || len(s) > maxSlugLength || s == "new" {
				t.Fatalf("%q gave %q", name, s)
			}
		}
		if numbered == slug {
			t.Fatalf("%q has no second spelling", slug)
		}
		if kept, err := ParseName(name); err == nil {
			if again, err := ParseName(kept); err != nil || again != kept || utf8.RuneCountInString(kept) > maxNameLength {
				t.Fatalf("%q became %q, then %q, %v", name, kept, again, err)
			}
		}
	})
}

func TestParseEmail(t *testing.T) {
	local, label := strings.Repeat("a", maxLocalPartLength), strings.Repeat("b", 63)
	longest := local + "@" + label + "." + label + "." + strings.Repeat("c", 61)
	for text, want := range map[string]string{
		" Ada.Lovelace+x@Example.COM\n": "ada.lovelace+x@example.com",
		"root@localhost":                "root@localhost",
		"o'hara_1@xn--mller-kva.de":     "o'hara_1@xn--mller-kva.de",
		longest:                         longest,
		longest + "c":                   "",
		"a" + local + "@b.c":            "",
		"":                              "",
		"ada":                           "",
		"@example.com":                  "",
		"ada@":                          "",
		"ada@@example.com":              "",
		"ada@b@example.com":             "",
		"ada lovelace@example.com":      "",
		"Ada <ada@example.com>":         "",
		"ada@example.com,b@c.d":         "",
		".ada@example.com":              "",
		"ada.@example.com":              "",
		"a..b@example.com":              "",
		"ada@example..com":              "",
		"ada@.example.com":              "",
		"ada@example.com.":              "",
		"ada\x00@example.com":           "",
		"ada@example.com\nBcc:b@c.d":    "",
		"\u212aarl@example.com":         "", // the Kelvin sign, which is k in lower case
		"ada@exämple.com":               "",
		"ada@example.com\xff":           "",
	} {
		got, err := ParseEmail(text)
		if got != want || (want == "") != fault.Is(err, fault.InvalidRequest) {
			t.Errorf("ParseEmail(%q) = %q, %v", text, got, err)
		}
	}
	if len(longest) != maxEmailLength {
		t.Errorf("the longest address here has %d characters", len(longest))
	}
}

func TestNewUser(t *testing.T) {
	id := ids.New()
	got, err := NewUser(id, "Ada@Example.com", " Ada ", 42)
	if want := (User{ID: id, Email: "ada@example.com", Name: "Ada", CreatedAt: 42}); err != nil || got != want {
		t.Errorf("got %+v, %v", got, err)
	}
	for _, c := range [][2]string{{"ada", "Ada"}, {"ada@example.com", ""}} {
		if _, err := NewUser(id, c[0], c[1], 42); !fault.Is(err, fault.InvalidRequest) {
			t.Errorf("%q: %v", c, err)
		}
	}
}
