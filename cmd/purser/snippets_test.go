package main

import (
	"html"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"purser/docs"
)

// The quickstart's programs are pasted by people who have nothing but a key. They
// are run here as they are shown.
func TestSnippetsWorkWhenPasted(t *testing.T) {
	t.Parallel()
	base, environ := startServer(t)
	key := makeKey(t, environ, "Chat", "setup")
	call := docs.Call{Address: base, Identity: "user-42", Credit: "tokens", Feature: "chat"}
	setup := strings.Join([]string{call.DefineCredit(), call.PriceFeature(), call.FundWallet()}, "\n")
	if answers := runShell(t, setup, "PURSER_KEY="+key); strings.Contains(answers, `"error"`) || !strings.Contains(answers, `"duplicate":false`) {
		t.Fatalf("the first steps answer %s", answers)
	}
	// An ingestion key is all that a use needs.
	key = makeKey(t, environ, "Chat", "ingestion")

	t.Run("curl", func(t *testing.T) {
		answer := runShell(t, snippetIn(t, "curl", call), "PURSER_KEY="+key)
		if !strings.Contains(answer, `"allowed":true`) || !strings.Contains(answer, `"status":"accepted"`) {
			t.Error(answer)
		}
	})
	t.Run("go", func(t *testing.T) { tracks(t, call, key, "go", "track.go", "go", "run") })
	t.Run("python", func(t *testing.T) { tracks(t, call, key, "python", "track.py", "python3") })
}

// tracks runs the program that a language's quickstart shows.
func tracks(t *testing.T, call docs.Call, key, language, file, program string, args ...string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), file)
	writeFile(t, path, snippetIn(t, language, call))
	run := func(key string) (string, error) {
		command := exec.CommandContext(t.Context(), program, append(slices.Clone(args), path)...)
		command.Env = append(os.Environ(), "PURSER_KEY="+key)
		printed, err := command.CombinedOutput()
		return string(printed), err
	}
	if printed, err := run(key); err != nil || !strings.HasPrefix(printed, "accepted 250000000 txn_") {
		t.Errorf("%v: %s", err, printed)
	}
	if printed, err := run("psr_test_wrong"); err == nil || !strings.Contains(printed, "invalid_api_key") {
		t.Errorf("with a wrong key it says: %v, %s", err, printed)
	}
}

func snippetIn(t *testing.T, language string, call docs.Call) string {
	t.Helper()
	text, err := docs.FindLanguage(language).Snippet(call)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// README.md and the welcome page show the same names and commands as the guide.
func TestFirstCommandsWorkOnAFreshServer(t *testing.T) {
	t.Parallel()
	base, environ := startServer(t)

	t.Run("those of README.md", func(t *testing.T) {
		text, err := os.ReadFile("../../README.md")
		if err != nil {
			t.Fatal(err)
		}
		var script strings.Builder
		for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
			script.WriteString(regexp.MustCompile(`(?m)^export .*$`).ReplaceAllString(block[1], ""))
		}
		answers := runShell(t, script.String(), "PURSER_URL="+base, "PURSER_KEY="+makeKey(t, environ, "README", "setup"))
		if strings.Contains(answers, `"error"`) || !strings.Contains(answers, `"status":"accepted"`) || !strings.Contains(answers, `"url":"`) {
			t.Error(answers)
		}
	})

	t.Run("those of the welcome page", func(t *testing.T) {
		_, page := fetch(t, http.MethodGet, base+"/", "", "")
		key := makeKey(t, environ, "Chat", "setup")
		var script strings.Builder
		for _, found := range regexp.MustCompile(`(?s)<pre id="([a-z-]+)"[^>]*><code>(.*?)</code></pre>`).FindAllStringSubmatch(page, -1) {
			command := html.UnescapeString(regexp.MustCompile(`</?span[^>]*>`).ReplaceAllString(found[2], ""))
			switch found[1] {
			case "make-key":
				if !strings.HasSuffix(command, " keys create --org Acme --app Chat --preset setup") {
					t.Errorf("it creates a key with %s", command)
				}
			case "hold-key":
				script.WriteString("{ " + command + "; } <<'END'\n" + key + "\nEND\n")
			default:
				script.WriteString(command + "\n")
			}
		}
		answers := runShell(t, script.String())
		if strings.Contains(answers, `"error"`) || !strings.Contains(answers, `"status":"accepted"`) || !strings.Contains(answers, `"amountNanocredits":"4750000000"`) {
			t.Errorf("%s\n%s", script.String(), answers)
		}
	})
}
