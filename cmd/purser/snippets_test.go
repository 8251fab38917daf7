package main

import (
	"os"
	"os/exec"
	"path/filepath"
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
	for _, run := range []struct {
		language, file, program string
		args                    []string
		needed                  bool // the others are run where they are installed
	}{
		{"go", "track.go", "go", []string{"run"}, true},
		{"python", "track.py", "python3", nil, true},
		{"typescript", "track.mts", "node", []string{"--experimental-strip-types", "--no-warnings"}, false},
	} {
		t.Run(run.language, func(t *testing.T) {
			if !run.needed && !understands(t, run.program, run.args) {
				t.Logf("%s is not there, or does not know the language", run.program)
				return
			}
			path := filepath.Join(t.TempDir(), run.file)
			if err := os.WriteFile(path, []byte(snippetIn(t, run.language, call)), 0o600); err != nil {
				t.Fatal(err)
			}
			command := exec.CommandContext(t.Context(), run.program, append(run.args, path)...)
			command.Env = append(os.Environ(), "PURSER_KEY="+key)
			printed, err := command.CombinedOutput()
			if err != nil || !strings.HasPrefix(string(printed), "accepted 250000000 txn_") {
				t.Errorf("%v: %s", err, printed)
			}
			command = exec.CommandContext(t.Context(), run.program, append(run.args, path)...)
			command.Env = append(os.Environ(), "PURSER_KEY=psr_test_wrong")
			if printed, err := command.CombinedOutput(); err == nil || !strings.Contains(string(printed), "invalid_api_key") {
				t.Errorf("with a wrong key it says: %v, %s", err, printed)
			}
		})
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

// understands reports whether the program is there and takes the arguments.
func understands(t *testing.T, program string, args []string) bool {
	t.Helper()
	return exec.CommandContext(t.Context(), program, append(args, "--version")...).Run() == nil
}
