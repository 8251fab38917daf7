package docs

import (
	"embed"
	"slices"
	"strings"
	"sync"
	"text/template"
)

//go:embed snippets/*
var snippetFiles embed.FS

// Language is one in which a first use can be tracked.
type Language struct {
	Key  string // in addresses
	Name string
	file string
}

// Languages lists them, the plainest first.
var Languages = []Language{
	{"curl", "curl", "track.sh"},
	{"go", "Go", "track.go.txt"},
	{"typescript", "TypeScript", "track.ts"},
	{"python", "Python", "track.py"},
}

// FindLanguage gives the language with the key, or the first one.
func FindLanguage(key string) Language {
	at := slices.IndexFunc(Languages, func(l Language) bool { return l.Key == key })
	return Languages[max(at, 0)]
}

// Call is what a snippet fills in. The caller sees to it that none of it ends a
// string: an address that was parsed, keys of the catalog, an identity of ours.
type Call struct {
	Address  string // of the server, without a slash at the end
	Identity string
	Credit   string
	Feature  string
}

// DefineCredit is the command that makes the call's credit.
func (c Call) DefineCredit() string {
	return c.post("/v1/credits", `{"key": "`+c.Credit+`", "name": "Tokens", "unit": "token"}`)
}

// PriceFeature is the command that makes the call's feature.
func (c Call) PriceFeature() string {
	return c.post("/v1/features", `{"key": "`+c.Feature+`", "name": "Chat message", "unit": "message",
           "creditKey": "`+c.Credit+`", "costNanocredits": "250000000"}`)
}

// FundWallet is the command that lets the call's identity pay for it. Sent twice,
// it funds once.
func (c Call) FundWallet() string {
	return c.post("/v1/deposits", `{"identity": "`+c.Identity+`", "creditKey": "`+c.Credit+`",
           "amountNanocredits": "5000000000", "idempotencyKey": "quickstart-`+c.Credit+`"}`)
}

func (c Call) post(path, body string) string {
	return "curl '" + c.Address + path + "' -H \"Authorization: Bearer $PURSER_KEY\" \\\n  --json '" + body + "'"
}

var snippets = sync.OnceValues(func() (*template.Template, error) {
	return template.ParseFS(snippetFiles, "snippets/*")
})

// Snippet is a program that checks a use, tracks it, and retries until there is
// an answer. It takes the key from PURSER_KEY and needs nothing but the language.
func (l Language) Snippet(call Call) (string, error) {
	all, err := snippets()
	if err != nil {
		return "", err
	}
	var text strings.Builder
	err = all.ExecuteTemplate(&text, l.file, call)
	return strings.TrimSuffix(text.String(), "\n"), err
}
