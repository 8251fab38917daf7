package site

import (
	"testing"

	"purser/tenancy"
)

func TestLocalPath(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"/o/acme?x=1#y": "/o/acme?x=1#y", "": "/", "o/acme": "/", "//evil.example": "/", `/\evil.example`: "/",
		"https://evil.example/": "/", "javascript:alert(1)": "/", "/o\r\nSet-Cookie: x": "/", "/\t/evil.example": "/", "///evil": "/",
	} {
		if got := LocalPath(path); got != want {
			t.Errorf("%q becomes %q, want %q", path, got, want)
		}
	}
}

func TestRoutesAreRefusedThatOpenMoreThanTheySay(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]Route{
		"a permission outside an organization": Get("/keys", tenancy.KeysRead, nil),
		"a membership outside an organization": Get("/o", AnyMember, nil),
		"an organization open to anyone":       Get("/o/{org}/keys", Anyone, nil),
		"an organization open to any account":  Get("/o/{org}", SignedIn, nil),
		"a password asked without a sign-in":   Reauth(Get("/docs", Anyone, nil)),
		"a cached page of an account":          Cacheable(Get("/account", SignedIn, nil)),
		"a cached form":                        Cacheable(Post("/theme", Anyone, nil)),
	} {
		if r.check() == nil {
			t.Errorf("%s is taken", name)
		}
	}
	if err := Get("/o/{org}/a/{app}/keys", tenancy.KeysRead, nil).check(); err != nil {
		t.Error(err)
	}
}
