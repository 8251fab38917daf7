package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"purser/docs"
)

const pythonClientCalls = `
import purser

for path, body in (("/moved", {"id": "e"}), ("/page", {"id": "e"}), ("/lost", {"key": "k"}), ("/keyed", {"id": "e"}), ("/limited", {"key": "k"}), ("/cut", {"id": "e"})):
    try:
        purser.post(path, body)
        print("ok")
    except Exception as problem:
        print(problem)
`

const goClientCalls = `package main

import (
	"context"
	"fmt"

	"calls/purser"
)

func main() {
	for _, c := range []struct {
		path string
		body map[string]string
	}{{"/moved", map[string]string{"id": "e"}}, {"/page", map[string]string{"id": "e"}}, {"/lost", map[string]string{"key": "k"}}, {"/keyed", map[string]string{"id": "e"}}, {"/limited", map[string]string{"key": "k"}}, {"/cut", map[string]string{"id": "e"}}} {
		if _, err := purser.Post(context.Background(), c.path, c.body); err != nil {
			fmt.Println(err)
		} else {
			fmt.Println("ok")
		}
	}
}
`

// TestClientsRepeatOnlyWhatIsSafe runs the clients of the guides. TypeScript is run by
// TestTypeScriptClientRepeatsOnlyWhatIsSafe.
func TestClientsRepeatOnlyWhatIsSafe(t *testing.T) {
	t.Parallel()
	t.Run("python", func(t *testing.T) {
		t.Parallel()
		folder := t.TempDir()
		writeClient(t, "python", folder, "purser.py")
		writeFile(t, filepath.Join(folder, "calls.py"), pythonClientCalls)
		repeatsOnlyWhatIsSafe(t, folder, "python3", "calls.py")
	})
	t.Run("go", func(t *testing.T) {
		t.Parallel()
		folder := t.TempDir()
		writeFile(t, filepath.Join(folder, "go.mod"), "module calls\n\ngo 1.24\n")
		writeClient(t, "go", folder, "purser/purser.go")
		writeFile(t, filepath.Join(folder, "main.go"), goClientCalls)
		repeatsOnlyWhatIsSafe(t, folder, "go", "run", ".")
	})
}

// TestClientsOutwaitTheFeed reads the timeout of each client: GET /v1/notifications
// waits up to 25 seconds.
func TestClientsOutwaitTheFeed(t *testing.T) {
	t.Parallel()
	for language, timeout := range map[string]string{"python": "timeout=40", "go": "Timeout: 40 * time.Second", "typescript": "timeout(40_000)"} {
		client, err := docs.FindLanguage(language).Client()
		if err != nil || !strings.Contains(client, timeout) {
			t.Errorf("the client in %s doesn't have %s: %v", language, timeout, err)
		}
	}
}

// repeatsOnlyWhatIsSafe runs a program that posts to a server in trouble.
func repeatsOnlyWhatIsSafe(t *testing.T, folder, name string, args ...string) {
	t.Helper()
	var mu sync.Mutex
	asked := map[string]int{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked[r.Method+" "+r.URL.Path]++
		times := asked[r.Method+" "+r.URL.Path]
		first := times == 1
		mu.Unlock()
		switch path := r.URL.Path; {
		case path == "/moved":
			http.Redirect(w, r, "/elsewhere", http.StatusFound)
		case path == "/page":
			http.Error(w, "<p>Not here", http.StatusNotFound)
		case path == "/lost" || path == "/keyed" && first:
			http.Error(w, "", http.StatusInternalServerError)
		case path == "/limited" && first:
			http.Error(w, "", http.StatusTooManyRequests)
		case path == "/cut" && times < 3: // halfway through an answer, and through a refusal
			w.Header().Set("Content-Length", "40")
			w.WriteHeader([]int{http.StatusCreated, http.StatusConflict}[times-1])
			fmt.Fprint(w, `{"error": `)
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		default:
			fmt.Fprint(w, "{}")
		}
	}))
	defer server.Close()
	command := exec.CommandContext(t.Context(), name, args...)
	command.Dir, command.Env = folder, append(os.Environ(), "GOWORK=off", "PURSER_URL="+server.URL, "PURSER_KEY=k")
	printed, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, printed)
	}
	want := strings.NewReplacer("URL", server.URL).Replace(`unexpected_response: status 302: is URL Purser's address?
unexpected_response: status 404: is URL Purser's address?
no response from URL: read whether it was done before you send it again
ok
ok
ok
`)
	if string(printed) != want {
		t.Errorf("it prints\n%s\nexpected\n%s", printed, want)
	}
	if got := fmt.Sprint(asked); got != "map[POST /cut:3 POST /keyed:2 POST /limited:2 POST /lost:1 POST /moved:1 POST /page:1]" {
		t.Errorf("the server was asked %s", got)
	}
}
