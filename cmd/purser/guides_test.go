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

// A guide that says "checked" in a comment is run as a reader would: its sh blocks
// one after the other, and the answers held against its json blocks.
const checkedMark = "<!-- checked:"

func TestGuidesAreTrue(t *testing.T) {
	t.Parallel()
	base, environ := startServer(t)
	key := makeKey(t, environ, "setup")
	guides, err := docs.Guides()
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	// In reading order and one application: later guides build on earlier ones.
	for _, guide := range guides {
		if !strings.Contains(guide.Markdown, checkedMark) {
			continue
		}
		checked++
		t.Run(guide.Slug, func(t *testing.T) { followGuide(t, guide, base, key) })
	}
	if checked < 4 {
		t.Errorf("only %d guides are checked", checked)
	}
	t.Run("error pages name the status that the API answers with", func(t *testing.T) {
		for _, refused := range []struct{ method, path, key, body string }{
			{http.MethodGet, "/v1/application", "", ""},
			{http.MethodGet, "/v1/nowhere", key, ""},
			{http.MethodPut, "/v1/credits", key, "{}"},
			{http.MethodPost, "/v1/credits", key, "{}"},
			{http.MethodPost, "/v1/credits", makeKey(t, environ, "read-only"), "{}"},
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
			if _, page := fetch(t, http.MethodGet, base+"/docs/errors/"+refusal.Error, "", ""); !strings.Contains(page, fmt.Sprintf("HTTP %d ", status)) {
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

// Ends the output of one block in that of the whole guide; no answer holds it.
const blockEnd = "\x1e"

func followGuide(t *testing.T, guide docs.Guide, base, key string) {
	t.Helper()
	var script strings.Builder
	var commands []string
	answers := map[int]string{} // of the command with this number
	for _, block := range guide.Body {
		switch {
		case block.Code == nil:
		case block.Code.Language == "sh":
			commands = append(commands, block.Code.Text)
			script.WriteString(block.Code.Text + "\nprintf '\\036'\n")
		case block.Code.Language == "json":
			answers[len(commands)-1] = block.Code.Text
		}
	}
	printed := runShell(t, script.String(), "PURSER_URL="+base, "PURSER_KEY="+key)
	outputs := strings.Split(printed, blockEnd)
	if len(outputs) != len(commands)+1 {
		t.Fatalf("%d commands, %d outputs:\n%s", len(commands), len(outputs)-1, printed)
	}
	for i, command := range commands {
		want, said := answers[i]
		if said {
			if complaint := compareAnswers([]byte(want), []byte(outputs[i])); complaint != "" {
				t.Errorf("%s\nanswers\n%s\n%s", command, outputs[i], complaint)
			}
			continue
		}
		if strings.Contains(outputs[i], `"error"`) || !strings.HasPrefix(outputs[i], "{") {
			t.Errorf("%s\nanswers\n%s", command, outputs[i])
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
	anyMoment = regexp.MustCompile(`"(createdAt)":\s*\d{13}`)
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

func makeKey(t *testing.T, environ []string, preset string) string {
	t.Helper()
	var out, diagnostics bytes.Buffer
	args := []string{"keys", "create", "--json", "--org", "Acme", "--app", "Chat", "--preset", preset}
	if err := run(t.Context(), args, slices.Clone(environ), &out, &diagnostics); err != nil {
		t.Fatalf("%v\n%s", err, diagnostics.String())
	}
	var made madeKey
	if err := json.Unmarshal(out.Bytes(), &made); err != nil {
		t.Fatal(err)
	}
	return made.Secret
}
