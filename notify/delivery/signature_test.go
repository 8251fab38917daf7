package delivery_test

import (
	"testing"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"purser/notify"
)

// verify checks a webhook as receivers do, with the official library.
func verify(t *testing.T, secret notify.Secret, n received) {
	t.Helper()
	hooks, err := standardwebhooks.NewWebhook(secret.Reveal())
	noError(t, err)
	if err := hooks.Verify(n.body, n.header); err != nil {
		t.Errorf("the official library refuses a webhook: %v", err)
	}
	if err := hooks.Verify(append(n.body, ' '), n.header); err == nil {
		t.Error("the official library accepts a changed body")
	}
}

// verifyLate is verify by a receiver that does not look at the time.
func verifyLate(t *testing.T, secret notify.Secret, n received) {
	t.Helper()
	hooks, err := standardwebhooks.NewWebhook(secret.Reveal())
	noError(t, err)
	if err := hooks.VerifyIgnoringTimestamp(n.body, n.header); err != nil {
		t.Errorf("the official library refuses a webhook: %v", err)
	}
}
