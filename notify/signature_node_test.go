//go:build sdks

package notify_test

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"purser/ids"
	"purser/notify"
)

// The library is the current standardwebhooks of npm, which `make sdks` installs. That of
// Go runs with `make test`.
func TestTheNodeLibraryAcceptsSignatures(t *testing.T) {
	t.Parallel()
	secrets := make([]notify.Secret, 2)
	for i := range secrets {
		var err error
		if secrets[i], err = notify.NewSecret(rand.Reader); err != nil {
			t.Fatal(err)
		}
	}
	now := time.Now().Unix()
	var input bytes.Buffer
	var want []string
	add := func(accepted bool, with notify.Secret, at int64, change string, signers ...notify.Secret) {
		t.Helper()
		for _, kind := range notify.Types() {
			n := notify.New(kind, ids.New(), notify.Sample(kind), now*1000)
			n.Seq, n.Identity = 7, "käufer \"42\" \u2028"
			message, err := n.Message(true, 6)
			if err != nil {
				t.Fatal(err)
			}
			id := n.ID.Format(ids.Notification)
			line, err := json.Marshal(map[string]any{"secret": with.Reveal(), "body": string(message) + change, "headers": map[string]string{
				notify.HeaderID: id, notify.HeaderTimestamp: strconv.FormatInt(at, 10), notify.HeaderSignature: notify.Sign(id, at, message, signers...),
			}})
			if err != nil {
				t.Fatal(err)
			}
			input.Write(append(line, '\n'))
			if accepted {
				want = append(want, "accepted")
			} else {
				want = append(want, "refused")
			}
		}
	}
	add(true, secrets[0], now, "", secrets[0])
	add(true, secrets[0], now, "", secrets[1], secrets[0]) // while a rotation overlaps
	add(true, secrets[1], now, "", secrets[1], secrets[0])
	add(false, secrets[1], now, "", secrets[0])
	add(false, secrets[0], now, " ", secrets[0])
	add(false, secrets[0], now-3600, "", secrets[0])
	node := exec.CommandContext(t.Context(), "node", "verify.mjs")
	node.Dir, node.Stdin, node.Stderr = "node", &input, t.Output()
	output, err := node.Output()
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Split(strings.TrimSpace(string(output)), "\n")
	if len(got) != len(want) {
		t.Fatalf("%d answers to %d webhooks", len(got), len(want))
	}
	for i := range want {
		if !strings.HasPrefix(got[i], want[i]) {
			t.Errorf("webhook %d is %s, want %s", i, got[i], want[i])
		}
	}
}
