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

//go:embed clients/*
var clientFiles embed.FS

// Language is one in which examples are shown.
type Language struct {
	Key  string // in addresses, and of its highlighting
	Name string
	file string // of its quickstart

	receiver string // a program that receives webhooks; empty for none

	// ClientFile is what to save the client as; empty for curl, which needs none.
	ClientFile string
	stored     string
}

// Languages lists them, the plainest first.
var Languages = []Language{
	{Key: "curl", Name: "curl", file: "track.sh"},
	{Key: "typescript", Name: "TypeScript", file: "track.ts", receiver: "receive.ts", ClientFile: "purser.ts", stored: "purser.ts"},
	{Key: "python", Name: "Python", file: "track.py", receiver: "receive.py", ClientFile: "purser.py", stored: "purser.py"},
	{Key: "go", Name: "Go", file: "track.go.txt", receiver: "receive.go.txt", ClientFile: "purser/purser.go", stored: "purser.go.txt"},
}

// Client is the file that translated examples import; empty for curl.
func (l Language) Client() (string, error) {
	if l.stored == "" {
		return "", nil
	}
	text, err := clientFiles.ReadFile("clients/" + l.stored)
	return string(text), err
}

func languageByKey(key string) (Language, bool) {
	at := slices.IndexFunc(Languages, func(l Language) bool { return l.Key == key })
	if at < 0 {
		return Language{}, false
	}
	return Languages[at], true
}

// FindLanguage gives the language with the key, or the first one.
func FindLanguage(key string) Language {
	if language, known := languageByKey(key); known {
		return language
	}
	return Languages[0]
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

// Deposit is the command that adds credits to the call's wallet each time it is sent.
func (c Call) Deposit() string {
	return c.post("/v1/deposits", `{"identity": "`+c.Identity+`", "creditKey": "`+c.Credit+`",
           "amountNanocredits": "1000000000", "idempotencyKey": "'"$(date +%s)"'"}`)
}

// TrackUsage is the command that charges the call's identity. Sent twice, it charges once.
func (c Call) TrackUsage() string {
	return c.post("/v1/events", `{"id": "first-event-`+c.Feature+`", "identity": "`+c.Identity+`", "feature": "`+c.Feature+`"}`)
}

// ReadWallet is the command that shows the call's balance.
func (c Call) ReadWallet() string {
	return "curl '" + c.Address + "/v1/wallets/" + c.Identity + "' -H \"Authorization: Bearer $PURSER_KEY\""
}

func (c Call) post(path, body string) string {
	return "curl '" + c.Address + path + "' -H \"Authorization: Bearer $PURSER_KEY\" \\\n  --json '" + body + "'"
}

// Receiving is the language itself, or the first in which there is a program that receives
// webhooks.
func (l Language) Receiving() Language {
	if l.receiver != "" {
		return l
	}
	return Languages[slices.IndexFunc(Languages, func(l Language) bool { return l.receiver != "" })]
}

// Receiver is a program that receives webhooks at port 3000 and checks their signatures.
// It takes the secret from WEBHOOK_SECRET and needs nothing but the language.
func (l Language) Receiver() (string, error) {
	text, err := snippetFiles.ReadFile("snippets/" + l.Receiving().receiver)
	return strings.TrimSuffix(string(text), "\n"), err
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
