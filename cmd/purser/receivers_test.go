package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"purser/docs"
	"purser/ids"
	"purser/notify"
	"purser/store/storetest"
)

// The programs that the Webhooks page shows accept what Purser signs and nothing else.
func TestReceiversCheckSignatures(t *testing.T) {
	t.Parallel()
	t.Run("go", func(t *testing.T) {
		t.Parallel()
		folder := t.TempDir()
		source, program := filepath.Join(folder, "receive.go"), filepath.Join(folder, "receive")
		writeReceiver(t, "go", source)
		if printed, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, source).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, printed)
		}
		receives(t, "", program)
	})
	t.Run("python", func(t *testing.T) {
		t.Parallel()
		source := filepath.Join(t.TempDir(), "receive.py")
		writeReceiver(t, "python", source)
		receives(t, "", "python3", source)
	})
}

func writeReceiver(t *testing.T, language, path string) {
	t.Helper()
	text, err := docs.FindLanguage(language).Receiver()
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, path, text)
}

// receives runs a program in a folder, and sends it webhooks.
func receives(t *testing.T, folder, program string, args ...string) {
	t.Helper()
	secret, err := notify.NewSecret(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	other, err := notify.NewSecret(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	address, end := startReceiver(t, secret, folder, program, args...)
	now := time.Now().Unix()
	n := notify.New(notify.DepositCreated, ids.New(), notify.Sample(notify.DepositCreated), now*1000)
	n.Seq, n.Identity = 7, "user-42"
	message, err := n.Message(false, 6)
	if err != nil {
		t.Fatal(err)
	}
	id := n.ID.Format(ids.Notification)
	for _, sent := range []struct {
		name      string
		at        int64
		signature string
		body      []byte
		want      int
	}{
		{"a changed body", now, notify.Sign(id, now, message, secret), append([]byte(" "), message...), http.StatusUnauthorized},
		{"another secret", now, notify.Sign(id, now, message, other), message, http.StatusUnauthorized},
		{"no signature", now, "", message, http.StatusUnauthorized},
		{"an old one", now - 3600, notify.Sign(id, now-3600, message, secret), message, http.StatusUnauthorized},
		{"a signed one", now, notify.Sign(id, now, message, secret), message, http.StatusNoContent},
		{"one signed with two secrets", now, notify.Sign(id, now, message, other, secret), message, http.StatusNoContent},
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+address+"/hooks", bytes.NewReader(sent.body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set(notify.HeaderID, id)
		request.Header.Set(notify.HeaderTimestamp, strconv.FormatInt(sent.at, 10))
		request.Header.Set(notify.HeaderSignature, sent.signature)
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatalf("%s: %v\n%s", sent.name, err, end())
		}
		answer.Body.Close()
		if answer.StatusCode != sent.want {
			t.Errorf("%s is answered with %d", sent.name, answer.StatusCode)
		}
	}
	if printed := end(); strings.Count(printed, "deposit.created user-42") != 2 {
		t.Errorf("it printed %q", printed)
	}
}

// startReceiver runs a program, and returns where it listens and a function that ends it
// and gives what it printed. Another process may take the port first: then it gets
// another one.
func startReceiver(t *testing.T, secret notify.Secret, folder, program string, args ...string) (address string, end func() string) {
	t.Helper()
	var printed safeBuffer
	for range 10 {
		free, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		address = free.Addr().String()
		free.Close()
		_, port, err := net.SplitHostPort(address)
		if err != nil {
			t.Fatal(err)
		}
		ctx, kill := context.WithCancel(t.Context())
		command := exec.CommandContext(ctx, program, args...)
		command.Dir, command.Stdout, command.Stderr = folder, &printed, &printed
		command.Env = append(os.Environ(), "PORT="+port, "WEBHOOK_SECRET="+secret.Reveal())
		storetest.EndWithTests(command)
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_ = command.Wait() // by a signal
		}()
		end = func() string {
			kill()
			<-ended
			return printed.String()
		}
		t.Cleanup(func() { end() })
		if listens(address, ended) {
			return address, end
		}
	}
	t.Fatalf("%s does not listen:\n%s", program, printed.String())
	return "", nil
}

// listens waits until a program accepts connections; false when it ends before.
func listens(address string, ended <-chan struct{}) bool {
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		if connection, err := net.Dial("tcp", address); err == nil {
			connection.Close()
			return true
		}
		select {
		case <-ended:
			return false
		case <-again.C:
		}
	}
}
