package main_test

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The structure is what each package may import. This file is the list: a new import
// between packages, or a new package, is a decision. "views/..." means views and every
// package below it.

// nouns decide: each is pure, so that its tests need nothing but numbers.
var nouns = []string{"fault", "ids", "tenancy", "tenancy/audit", "tenancy/credential", "keys", "metering", "metering/monthly", "metering/rollup", "billing", "notify"}

// mayImport lists, for each package, which of ours its code may import.
var mayImport = map[string][]string{
	"fault":              {},
	"ids":                {},
	"tenancy":            {"fault", "ids"},
	"tenancy/audit":      {"ids", "tenancy"},
	"tenancy/credential": {"fault"},
	"keys":               {"fault", "ids", "tenancy"},
	"metering":           {"fault", "ids"},
	"metering/monthly":   {"fault", "metering"},
	"metering/rollup":    {"fault", "metering"},
	"billing":            {"fault", "ids", "metering"},
	"notify":             {"fault", "ids"},

	// It seals secrets that have to be read again, and is as pure as a noun.
	"tenancy/vault": {"ids"},

	// Callers of one tenant that wait for each other.
	"tenancy/turns": {},

	// The provider that lives in the server. Its engine is as pure as a noun.
	"payments/sandbox":             {"billing", "fault", "httpd/outgoing", "ids", "static", "tenancy/turns", "views/...", "payments/sandbox/..."},
	"payments/sandbox/engine":      {"payments/sandbox/persist"},
	"payments/sandbox/form":        {},
	"payments/sandbox/pages":       {"views/..."},
	"payments/sandbox/persist":     {}, // the stored form, shared with the store
	"payments/sandbox/sandboxtest": {"payments/sandbox/persist", "ids"},

	// The conversation with the provider: the client below, the store beside.
	"payments/stripe":  {"billing", "httpd/outgoing", "metering"},
	"payments/cashier": with(nouns, "jobs", "payments/stripe", "store", "store/payments", "store/queue", "store/verify", "tenancy/turns", "tenancy/vault"),

	// What runs later, for every package that has jobs.
	"jobs": {"ids", "store", "store/queue", "tenancy"},
	// The jobs of notifications.
	"notify/delivery": {"fault", "httpd/outgoing", "ids", "jobs", "notify", "store", "store/notifications", "store/queue", "tenancy", "tenancy/audit", "tenancy/vault"},

	// Mails: written by the edges and by jobs, sent by a periodic task.
	"mail":          with(nouns, "store", "store/notifications", "store/people", "tenancy/vault", "views/mail"),
	"mail/mailtest": {},

	"migrations":         {},
	"store":              with(nouns, "store/internal/identities", "store/internal/ledger", "store/internal/limits", "store/internal/pg", "store/internal/wire", "store/notifications", "store/payments", "store/people", "store/queue", "store/reports", "store/rollups", "store/verify"),
	"store/embedded/...": {"store/embedded/..."},
	"store/backup":       {"store/embedded", "store/embedded/flock"},
	"store/storetest":    with(nouns, "migrations", "store", "store/embedded/...", "store/internal/limits"),

	// The kernel: transactions and statements. Above it the queue, then what changes a
	// wallet, then the areas, which do not know each other.
	"store/reports":         with(nouns, "store/internal/ledger", "store/internal/pg", "store/internal/sketch", "tenancy/turns"),
	"store/payments":        with(nouns, "payments/sandbox/persist", "store/internal/ledger", "store/internal/pg", "store/internal/wire", "store/queue"),
	"store/people":          with(nouns, "store/internal/pg"),
	"store/rollups":         with(nouns, "store/internal/pg"),
	"store/verify":          with(nouns, "store/internal/ledger", "store/internal/pg", "store/internal/wire"),
	"store/packing":         with(nouns, "migrations", "store/internal/ledger", "store/internal/pg"),
	"store/queue":           with(nouns, "store/internal/pg"),
	"store/notifications":   with(nouns, "store/internal/pg"),
	"store/internal/sketch": {"ids"}, // counts ids, as pure as a noun
	"store/internal/pg":     with(nouns, "migrations", "store/internal/limits", "tenancy/turns"),
	"store/internal/ledger": with(nouns, "store/internal/pg", "store/queue"),
	// A change of identity touches what every area keeps of a wallet.
	"store/internal/identities": with(nouns, "store/internal/ledger", "store/internal/pg", "store/payments", "store/queue", "store/verify"),
	"store/internal/wire":       {"ids", "metering", "store/internal/pg"},

	// How long a session may take, which test processes relax.
	"store/internal/limits": {},

	// It embeds the files of the module's root.
	"purser": {},

	// The guides, and the reference as the OpenAPI document has it.
	"docs":        {"api/openapi", "fault"},
	"api/openapi": {}, // the one reader of the document

	"static":    {},
	"views/...": with(nouns, "docs", "static", "views/..."),
	// The HTTP shell around the edges: it knows no resource, no key and no database.
	"httpd": {"fault", "ids"},
	// The clients of what calls out.
	"httpd/outgoing": {},
	"api":            with(nouns, "api/openapi", "httpd", "notify/delivery", "payments/cashier", "store", "store/notifications", "store/payments", "store/people", "store/reports", "store/rollups"),

	// The pages, by what people do there, over what all of them share. They do not know
	// each other.
	"web":             {"api/openapi", "docs", "ids", "mail", "notify/delivery", "payments/cashier", "static", "store", "tenancy/vault", "views/...", "web/accounts", "web/catalog", "web/developers", "web/docs", "web/site", "web/support"},
	"web/site":        with(nouns, "docs", "httpd", "mail", "payments/cashier", "static", "store", "store/notifications", "store/payments", "store/people", "store/queue", "store/reports", "tenancy/vault", "views/..."),
	"web/accounts":    with(nouns, "httpd", "mail", "store/people", "tenancy/vault", "views/...", "web/site"),
	"web/catalog":     with(nouns, "store", "views/...", "web/site"),
	"web/developers":  with(nouns, "docs", "mail", "notify/delivery", "payments/cashier", "store", "store/notifications", "store/payments", "store/people", "store/reports", "views/...", "web/site"),
	"web/docs":        {"docs", "fault", "views/...", "web/site"},
	"web/inbound":     {"fault", "payments/cashier"},
	"web/support":     with(nouns, "store", "store/notifications", "store/payments", "store/queue", "store/reports", "store/rollups", "store/verify", "views/...", "web/site"),
	"web/browsertest": {},

	// The composition root imports everything but what only tests use.
	"cmd/purser": with(nouns, "api", "api/openapi", "cmd/purser/demo", "docs", "httpd", "httpd/outgoing", "jobs", "mail", "migrations", "notify/delivery", "payments/cashier", "payments/sandbox", "static", "store", "store/backup", "store/embedded/...", "store/packing", "store/payments", "store/people", "store/queue", "store/reports", "store/rollups", "store/verify", "tenancy/vault", "views/...", "web", "web/developers", "web/inbound", "web/site"),
	// It lives through some weeks as callers do, by the API; people and keys come first.
	"cmd/purser/demo": with(nouns, "httpd/outgoing", "store", "store/notifications", "store/people"),
	// It measures the server from outside; it writes rows in bulk and has their usage
	// added up as the server would.
	"cmd/bench": {"ids", "store", "store/embedded", "store/rollups", "tenancy"},
	// It changes the source as text, and runs the tests.
	"cmd/mutants": {},
	// It builds archives from the outside.
	"cmd/release": {},
	// Files for operators; its tests run the server in the image.
	"deploy": {},
}

// testPackages start a Postgres and a browser for tests. The tests of a package may use them when its code may use the store, and so
// may their own; no other code may.
var testPackages = []string{"store/storetest", "web/browsertest", "mail/mailtest"}

// testsMayImport lists what only the tests of a package may import.
var testsMayImport = map[string][]string{
	"deploy":              {"store/storetest"},                                                           // a database for the server in the image
	"store/backup":        {"store/storetest"},                                                           // databases to load a script into
	"store/people":        {"store/storetest"},                                                           // a database for the plan of a query
	"store/notifications": {"store", "store/internal/limits", "store/people"},                            // to open nodes, and an application on them
	"store":               {"migrations", "payments/sandbox/persist", "store/embedded", "store/packing"}, // for a server with settings that a store must refuse
	"jobs":                {"store/people"},                                                              // to make an application
	"notify/delivery":     {"keys", "metering", "store/people"},
	// What talks to the provider is tested with the one that lives in the server.
	"payments/stripe":  {"payments/sandbox", "payments/sandbox/sandboxtest", "fault", "ids"},
	"payments/cashier": {"notify/delivery", "payments/sandbox", "payments/sandbox/persist", "payments/sandbox/sandboxtest", "store/notifications", "store/people", "store/reports", "store/verify"},
	"web/browsertest":  {"api/openapi", "billing", "docs", "fault", "ids", "metering", "notify", "payments/sandbox/pages", "static", "tenancy", "views/..."}, // for pages that need no server behind them
	"api":              {"jobs", "payments/sandbox", "tenancy/vault"},
	// The pages are tested as a whole: api for the export; httpd to occupy lookups; jobs to send webhooks; persist to move an application's clock.
	"web": with(nouns, "api", "httpd", "jobs", "payments/sandbox/persist", "store/payments", "store/people", "store/queue", "store/reports", "store/rollups"),
	// To open a database.
	"web/accounts": {"store/storetest"},
	"web/inbound":  {"ids", "store", "store/payments", "store/people", "store/storetest", "tenancy", "tenancy/vault"},
}

// owners lists the libraries that only some packages may import, tests included.
var owners = map[string][]string{
	"github.com/labstack/echo":     {"httpd", "api", "web", "web/inbound", "web/site", "cmd/purser"},
	"github.com/uptrace/bun":       {"store/internal/pg", "store/people"},
	"github.com/jackc/pgx":         {"store/..."},
	"github.com/stripe/stripe-go":  {"payments/stripe"},
	"github.com/a-h/templ":         {"views/...", "web/accounts", "web/catalog", "web/site", "web/support", "payments/sandbox/pages"},
	"github.com/yuin/goldmark":     {"docs"},
	"github.com/alecthomas/chroma": {"docs"},
	"github.com/alexedwards/scs":   {"web/site"},
	"github.com/chromedp":          {"web/browsertest"},
	"github.com/wneessen/go-mail":  {"mail"},
	"github.com/emersion":          {"mail/mailtest"},
	"go.opentelemetry.io/otel":     {"api", "cmd/purser", "httpd", "store"},
}

// borrowers lists the packages whose tests may import a library that is not theirs.
var borrowers = map[string][]string{
	// To put the rows of an application back, and to copy them.
	"github.com/jackc/pgx": {"payments/cashier"},
	// What speaks a protocol is tested with the usual client.
	"github.com/stripe/stripe-go": {"payments/sandbox"},
	// To serve its own pages.
	"github.com/labstack/echo": {"web/accounts"},
	// To open a session as the site keeps one.
	"github.com/alexedwards/scs": {"web"},
	// What was generated is compared with what would be generated now.
	"github.com/a-h/templ": {"cmd/purser"},
	// To refuse a mail as a server does.
	"github.com/emersion": {"mail"},
}

// pure is what TestNounsArePure holds: the nouns, and what is made like one.
var pure = with(nouns, "payments/sandbox/engine", "payments/sandbox/persist", "tenancy/vault")

// impure is what a noun may not import: its result would depend on more than its arguments.
var impure = []string{"context", "log", "log/slog", "os", "net", "net/http", "database/sql"}

// excused names the exceptions, each with its reason.
var excused = map[string]string{
	"keys log/slog": "a secret is a slog.LogValuer, so that no log can show it",
}

func with(names []string, more ...string) []string {
	return slices.Concat(names, more)
}

func TestPackagesImportOnlyWhatTheyMay(t *testing.T) {
	t.Parallel()
	for _, one := range readPackages(t) {
		may, listed := importsOf(one.name)
		if !listed {
			t.Errorf("the package %s is new: list what it may import", one.name)
			continue
		}
		for _, imported := range one.ours(one.Imports) {
			if !matches(may, imported) {
				t.Errorf("%s may not import %s", one.name, imported)
			}
		}
		inTests := with(may, one.name)
		inTests = with(inTests, testsMayImport[one.name]...)
		if matches(inTests, "store") || slices.Contains(testPackages, one.name) {
			inTests = with(inTests, testPackages...)
		}
		for _, imported := range one.ours(one.testImports()) {
			if !matches(inTests, imported) {
				t.Errorf("the tests of %s may not import %s", one.name, imported)
			}
		}
	}
}

// taggedOnly is a package that go list does not name: it is built with a tag.
const taggedOnly = "cmd/lint"

func TestArchitectureListsEveryPackage(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(moduleRoot, "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	var listed []string
	for line := range strings.Lines(string(text)) {
		if names, _, isRow := strings.Cut(line, " | "); isRow && strings.HasPrefix(names, "| `") {
			for name := range strings.SplitSeq(strings.TrimPrefix(names, "| "), ", ") {
				listed = append(listed, strings.Trim(name, "`"))
			}
		}
	}
	packages := readPackages(t)
	for _, one := range packages {
		if !matches(listed, one.name) {
			t.Errorf("ARCHITECTURE.md does not list %s", one.name)
		}
	}
	for _, name := range listed {
		if name != taggedOnly && !slices.ContainsFunc(packages, func(one goPackage) bool { return matches([]string{name}, one.name) }) {
			t.Errorf("ARCHITECTURE.md lists %s, which is no package here", name)
		}
	}
}

func TestLibrariesStayInTheirPackages(t *testing.T) {
	t.Parallel()
	for _, one := range readPackages(t) {
		for library, users := range owners {
			inTests := with(users, borrowers[library]...)
			for _, path := range one.Imports {
				if below(path, library) && !matches(users, one.name) {
					t.Errorf("%s imports %s, which belongs to %v", one.name, path, users)
				}
			}
			for _, path := range one.testImports() {
				if below(path, library) && !matches(inTests, one.name) {
					t.Errorf("the tests of %s import %s, which belongs to %v", one.name, path, users)
				}
			}
		}
	}
}

func TestNounsArePure(t *testing.T) {
	t.Parallel()
	for _, one := range readPackages(t) {
		if !slices.Contains(pure, one.name) {
			continue
		}
		for _, path := range one.Imports {
			if slices.Contains(impure, path) && excused[one.name+" "+path] == "" {
				t.Errorf("%s is pure and imports %s", one.name, path)
			}
		}
		for _, file := range one.GoFiles {
			for _, place := range clockReads(t, filepath.Join(one.Dir, file)) {
				t.Errorf("%s reads the clock: take the time as an argument", place)
			}
		}
	}
}

// maxLines is how much production code a package may have. More of it is several
// packages.
const maxLines = 6000

// Views are exempt: markup is long, and each file of it is a page of its own.
func TestPackagesAreSmallEnoughToRead(t *testing.T) {
	t.Parallel()
	for _, one := range readPackages(t) {
		if below(one.name, "views") {
			continue
		}
		lines := 0
		for _, file := range one.GoFiles {
			if strings.HasSuffix(file, "_templ.go") { // generated
				continue
			}
			text, err := os.ReadFile(filepath.Join(one.Dir, file))
			if err != nil {
				t.Fatal(err)
			}
			lines += strings.Count(string(text), "\n")
		}
		if lines > maxLines {
			t.Errorf("%s has %d lines, more than %d: find the package in it", one.name, lines, maxLines)
		}
	}
}

func TestEveryPackageSaysWhatItIs(t *testing.T) {
	t.Parallel()
	for _, one := range readPackages(t) {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(one.Dir, "doc.go"), nil, parser.ParseComments)
		if err != nil {
			t.Errorf("%s has no doc.go that can be read: %v", one.name, err)
			continue
		}
		if file.Doc.Text() == "" {
			t.Errorf("the doc.go of %s has no package comment", one.name)
		}
	}
}

// moduleRoot is the module's folder: tests run in the folder of their package.
const moduleRoot = "../.."

const moduleName = "purser"

type goPackage struct {
	name string // the import path without the module

	ImportPath   string
	Dir          string
	GoFiles      []string
	Imports      []string
	TestImports  []string
	XTestImports []string
}

func (p goPackage) testImports() []string {
	return slices.Concat(p.TestImports, p.XTestImports)
}

// ours keeps the imports of this module, by their names.
func (p goPackage) ours(imports []string) []string {
	var names []string
	for _, path := range imports {
		if name, isOurs := strings.CutPrefix(path, moduleName+"/"); isOurs {
			names = append(names, name)
		}
	}
	return names
}

func readPackages(t *testing.T) []goPackage {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(outputOf(t, "go", "list", "-json=ImportPath,Dir,GoFiles,Imports,TestImports,XTestImports", "./...")))
	var packages []goPackage
	for {
		var next goPackage
		err := decoder.Decode(&next)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("reading what go list says: %v", err)
		}
		next.name = strings.TrimPrefix(next.ImportPath, moduleName+"/")
		packages = append(packages, next)
	}
	if len(packages) == 0 {
		t.Fatal("go list names no package")
	}
	return packages
}

func outputOf(t *testing.T, name string, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), name, args...)
	command.Dir = moduleRoot
	var complaint strings.Builder
	command.Stderr = &complaint
	output, err := command.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", command, err, complaint.String())
	}
	return string(output)
}

// importsOf finds the line of a package; no two lines match one.
func importsOf(name string) (may []string, listed bool) {
	for pattern, may := range mayImport {
		if matches([]string{pattern}, name) {
			return may, true
		}
	}
	return nil, false
}

func matches(patterns []string, name string) bool {
	for _, pattern := range patterns {
		if parent, deep := strings.CutSuffix(pattern, "/..."); pattern == name || deep && below(name, parent) {
			return true
		}
	}
	return false
}

// below reports whether the path is the parent or lies under it.
func below(path, parent string) bool {
	return path == parent || strings.HasPrefix(path, parent+"/")
}

// clockReads finds every mention of a function that looks at the clock or waits
// for it, whether it is called there or handed on.
func clockReads(t *testing.T, path string) []string {
	t.Helper()
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	clock := importedAs(file, "time")
	var places []string
	ast.Inspect(file, func(node ast.Node) bool {
		selector, isSelector := node.(*ast.SelectorExpr)
		if !isSelector {
			return true
		}
		reads := slices.Contains([]string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"}, selector.Sel.Name)
		if of, isName := selector.X.(*ast.Ident); reads && isName && of.Name == clock {
			places = append(places, set.Position(selector.Pos()).String())
		}
		return true
	})
	return places
}

// importedAs is the name under which the file knows a package of the standard
// library, or nothing.
func importedAs(file *ast.File, path string) string {
	for _, spec := range file.Imports {
		if value, err := strconv.Unquote(spec.Path.Value); err != nil || value != path {
			continue
		}
		if spec.Name != nil {
			return spec.Name.Name
		}
		return path
	}
	return ""
}
