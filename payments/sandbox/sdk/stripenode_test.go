//go:build sdks

package sdk

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"testing"
)

// The client is the current stripe-node, which `make sdks` installs. Node runs the
// story and asks this test for what a person or the network does.
func TestStripeNodeRunsTheLifeOfASubscription(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	address, err := url.Parse(s.api.URL)
	if err != nil {
		t.Fatal(err)
	}
	host, port, err := net.SplitHostPort(address.Host)
	if err != nil {
		t.Fatal(err)
	}
	node := exec.CommandContext(t.Context(), "node", "life.mjs")
	node.Dir, node.Stderr = "node", t.Output()
	node.Env = append(os.Environ(), "SANDBOX_HOST="+host, "SANDBOX_PORT="+port, "SANDBOX_KEY="+s.key, "RECEIVER="+s.receiver.URL)
	in := check[io.WriteCloser](t)(node.StdinPipe())
	out, err := node.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := node.Start(); err != nil {
		t.Fatal(err)
	}
	done := false
	for lines := bufio.NewScanner(out); lines.Scan(); {
		var asked struct {
			Pay      string `json:"pay"`
			Webhooks bool   `json:"webhooks"`
			Done     bool   `json:"done"`
		}
		if err := json.Unmarshal(lines.Bytes(), &asked); err != nil {
			t.Fatalf("%v: %s", err, lines.Bytes())
		}
		var answer struct {
			Webhooks []map[string]string `json:"webhooks"`
		}
		switch {
		case asked.Pay != "":
			s.pay(asked.Pay)
		case asked.Webhooks:
			if err := s.server.Flush(t.Context(), s.app); err != nil {
				t.Fatal(err)
			}
			s.server.WaitForSenders()
			for range len(s.webhooks) {
				got := <-s.webhooks
				answer.Webhooks = append(answer.Webhooks, map[string]string{"signature": got.signature, "body": string(got.body)})
			}
		case asked.Done:
			done = true
			if err := in.Close(); err != nil { // which ends the program
				t.Error(err)
			}
			continue
		}
		if err := json.NewEncoder(in).Encode(answer); err != nil {
			t.Fatal(err)
		}
	}
	if err := node.Wait(); err != nil || !done {
		t.Errorf("node ended with %v, done: %v", err, done)
	}
}
