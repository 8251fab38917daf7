package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"purser/docs"
)

// aloneMark is in guides that need an application of their own. The others continue each
// other, in reading order.
const aloneMark = docs.CheckedMark + " alone"

// TestGuidesAreTrue runs the guides as readers would, once in each language: their code one
// block after the other, with the outputs held against the blocks that follow. TypeScript
// is run by TestTypeScriptGuidesAreTrue.
func TestGuidesAreTrue(t *testing.T) {
	t.Parallel()
	base, environ := startServer(t)
	guides := checkedGuides(t)
	for _, language := range []string{"curl", "python", "go"} {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			followGuides(t, guides, docs.FindLanguage(language), base, environ)
		})
	}
	key := makeKey(t, environ, "Errors", "setup")
	call := docs.Call{Address: base, Identity: "user-42", Credit: "tokens", Feature: "chat"}
	runShell(t, call.DefineCredit()+"\n"+call.PriceFeature(), "PURSER_KEY="+key)
	fetch(t, http.MethodPost, base+"/v1/features", key, `{"key":"model","name":"M","unit":"call","creditKey":"tokens","costNanocredits":"0","pricingMode":"callback"}`)
	t.Run("error pages name the status that the API answers with", func(t *testing.T) {
		for _, refused := range []struct{ method, path, key, body string }{
			{http.MethodGet, "/v1/application", "", ""},
			{http.MethodGet, "/v1/nowhere", key, ""},
			{http.MethodPut, "/v1/credits", key, "{}"},
			{http.MethodPost, "/v1/credits", key, "{}"},
			{http.MethodPost, "/v1/credits", makeKey(t, environ, "Errors", "read-only"), "{}"},
			{http.MethodPost, "/v1/check", key, `{"identity":"a","feature":"missing"}`},
			{http.MethodPost, "/v1/check", key, `{"identity":"a","feature":"model"}`},
			{http.MethodPost, "/v1/credits", key, strings.Repeat(" ", 17<<10)},
			{http.MethodPost, "/v1/events", key, `{"id":"poor","identity":"nobody","feature":"chat"}`},
		} {
			status, answer := fetch(t, refused.method, base+refused.path, refused.key, refused.body)
			var refusal struct{ Error string }
			if err := json.Unmarshal([]byte(answer), &refusal); err != nil || refusal.Error == "" {
				t.Fatalf("%+v is answered with %s", refused, answer)
			}
			if _, page := fetch(t, http.MethodGet, base+"/docs/errors/"+refusal.Error, "", ""); !strings.Contains(page, fmt.Sprintf("%d %s", status, http.StatusText(status))) {
				t.Errorf("the page of %s does not say %d", refusal.Error, status)
			}
		}
	})
}

func fetch(t *testing.T, method, url, key, body string) (status int, answer string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	if key != "" {
		request.Header.Set("Authorization", "Bearer "+key)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

func checkedGuides(t *testing.T) []docs.Guide {
	t.Helper()
	guides, err := docs.Guides()
	if err != nil {
		t.Fatal(err)
	}
	checked := slices.DeleteFunc(slices.Clone(guides), func(g docs.Guide) bool { return !strings.Contains(g.Markdown, docs.CheckedMark) })
	if len(checked) < 6 {
		t.Errorf("only %d guides are checked", len(checked))
	}
	return checked
}

// followGuides runs all guides in a language; what is not in it is run by the shell.
func followGuides(t *testing.T, guides []docs.Guide, language docs.Language, base string, environ []string) {
	t.Helper()
	program := ""
	if language.Key == "go" {
		program = buildGo(t, goBlocks(guides))
	}
	shared := newReader(t, guides, language, program, base, makeKey(t, environ, "Chat in "+language.Name, "setup"))
	for _, guide := range guides {
		reader := shared
		if strings.Contains(guide.Markdown, aloneMark) {
			reader = newReader(t, guides, language, program, base, makeKey(t, environ, guide.Title+" in "+language.Name, "setup"))
		}
		t.Run(guide.Slug, func(t *testing.T) { reader.follow(t, guide) })
	}
}

// reader is a person at a terminal with a key.
type reader struct {
	language docs.Language
	shell    *session
	program  *session // in the language; nil for curl
	blocks   []string // of Go, which are called by number
}

func newReader(t *testing.T, guides []docs.Guide, language docs.Language, program, base, key string) *reader {
	t.Helper()
	environ := []string{"PURSER_URL=" + base, "PURSER_KEY=" + key}
	r := &reader{language: language, shell: newShell(t, environ)}
	switch language.Key {
	case "python":
		r.program = newPython(t, environ)
	case "typescript":
		r.program = newTypeScript(t, environ)
	case "go":
		r.blocks = goBlocks(guides)
		r.program = startSession(t, environ, t.TempDir(), program)
	}
	return r
}

func (r *reader) run(t *testing.T, variant docs.Variant) string {
	t.Helper()
	switch variant.Language.Key {
	case "python", "typescript":
		return r.program.run(t, variant.Text+string(blockEnd))
	case "go":
		return r.program.run(t, fmt.Sprintln(slices.Index(r.blocks, variant.Text)))
	}
	return r.shell.run(t, shellInput(variant.Text))
}

// follow runs a guide's code. A json or text block is what the code before it prints.
func (r *reader) follow(t *testing.T, guide docs.Guide) {
	t.Helper()
	for i, block := range guide.Body {
		if block.Code == nil || block.Code.Language != "sh" && len(block.Code.Variants) == 0 {
			continue
		}
		variant := block.Code.In(r.language)
		output := r.run(t, variant)
		if i+1 < len(guide.Body) && guide.Body[i+1].Code != nil {
			switch next := guide.Body[i+1].Code; next.Language {
			case "json":
				if complaint := compareAnswers([]byte(next.Text), []byte(output)); complaint != "" {
					t.Errorf("%s\nanswers\n%s\n%s", variant.Text, output, complaint)
				}
				continue
			case "text":
				if strings.TrimSpace(output) != next.Text {
					t.Errorf("%s\nprints\n%s\nand not\n%s", variant.Text, output, next.Text)
				}
				continue
			}
		}
		isCall := variant.Client || variant.Language.Key == "sh" || variant.Language.Key == "curl"
		if strings.Contains(output, `"error"`) || isCall && !strings.HasPrefix(output, "{") {
			t.Errorf("%s\nanswers\n%s", variant.Text, output)
		}
	}
}

// runShell runs a script in a shell that knows only these variables.
func runShell(t *testing.T, script string, environ ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "sh", "-eu", "-c", script)
	command.Env = append(environ, "PATH="+os.Getenv("PATH"), "HOME="+t.TempDir())
	var complaints bytes.Buffer
	command.Stderr = &complaints
	printed, err := command.Output()
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, complaints.String(), printed)
	}
	return string(printed)
}

// Ids and moments differ from run to run; all else is as the guide says.
var (
	anyID     = regexp.MustCompile(`^[a-z]{3}_[0-9a-z]{26}$`)
	anyMoment = regexp.MustCompile(`"(createdAt|effectiveAt)":\s*\d{13}`)
)

func compareAnswers(said, got []byte) (complaint string) {
	if !json.Valid(said) {
		return "the guide's answer is not JSON"
	}
	want, is := normalize(said), normalize(got)
	if want == is {
		return ""
	}
	return "and not\n" + want
}

func normalize(answer []byte) string {
	var value any
	decoder := json.NewDecoder(bytes.NewReader(anyMoment.ReplaceAll(answer, []byte(`"$1": 0`))))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		return string(answer)
	}
	var walk func(any) any
	walk = func(value any) any {
		switch value := value.(type) {
		case map[string]any:
			for name, member := range value {
				value[name] = walk(member)
			}
		case []any:
			for i, item := range value {
				value[i] = walk(item)
			}
		case string:
			if anyID.MatchString(value) {
				return value[:4] + "…"
			}
		}
		return value
	}
	text, err := json.MarshalIndent(walk(value), "", "  ")
	if err != nil {
		return string(answer)
	}
	return string(text)
}

func makeKey(t *testing.T, environ []string, app, preset string) string {
	t.Helper()
	var out, diagnostics bytes.Buffer
	args := []string{"keys", "create", "--json", "--org", "Acme", "--app", app, "--preset", preset}
	if err := run(t.Context(), args, slices.Clone(environ), &out, &diagnostics); err != nil {
		t.Fatalf("%v\n%s", err, diagnostics.String())
	}
	var made madeKey
	if err := json.Unmarshal(out.Bytes(), &made); err != nil {
		t.Fatal(err)
	}
	return made.Secret
}
