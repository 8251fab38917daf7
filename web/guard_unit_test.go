package web

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
		if got := localPath(path); got != want {
			t.Errorf("%q becomes %q, want %q", path, got, want)
		}
	}
}

func TestRoutesAreRefusedThatOpenMoreThanTheySay(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]route{
		"a permission outside an organization": get("/keys", tenancy.KeysRead, nil),
		"a membership outside an organization": get("/o", anyMember, nil),
		"an organization open to anyone":       get("/o/{org}/keys", anyone, nil),
		"an organization open to any account":  get("/o/{org}", signedIn, nil),
		"a password asked of nobody":           reauth(get("/docs", anyone, nil)),
	} {
		if r.check() == nil {
			t.Errorf("%s is taken", name)
		}
	}
	if err := get("/o/{org}/a/{app}/keys", tenancy.KeysRead, nil).check(); err != nil {
		t.Error(err)
	}
}
