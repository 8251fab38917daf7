package notify

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Headers of a webhook, as the Standard Webhooks specification 1.0 names them.
const (
	HeaderID        = "webhook-id"
	HeaderTimestamp = "webhook-timestamp"
	HeaderSignature = "webhook-signature"
)

const (
	secretPrefix = "whsec_"
	secretSize   = 32
)

// Secret signs the webhooks of an endpoint. It does not print: Reveal shows it.
type Secret struct{ key []byte }

func NewSecret(random io.Reader) (Secret, error) {
	key := make([]byte, secretSize)
	if _, err := io.ReadFull(random, key); err != nil {
		return Secret{}, fmt.Errorf("notify: no randomness: %w", err)
	}
	return Secret{key}, nil
}

// ParseSecret reads what Reveal wrote.
func ParseSecret(text string) (Secret, error) {
	encoded, found := strings.CutPrefix(text, secretPrefix)
	key, err := base64.StdEncoding.DecodeString(encoded)
	if !found || err != nil || len(key) != secretSize {
		return Secret{}, errors.New("notify: this is no secret of a webhook endpoint")
	}
	return Secret{key}, nil
}

// Reveal is the secret in the form that receivers use.
func (s Secret) Reveal() string { return secretPrefix + base64.StdEncoding.EncodeToString(s.key) }

// String hides the secret from logs.
func (s Secret) String() string { return secretPrefix + "…" }

// GoString hides the secret from logs.
func (s Secret) GoString() string { return s.String() }

// Sign is the value of the signature header: one signature for each secret, the current
// one first.
func Sign(id string, timestamp int64, message []byte, secrets ...Secret) string {
	signatures := make([]string, len(secrets))
	for i, s := range secrets {
		mac := hmac.New(sha256.New, s.key)
		mac.Write([]byte(id + "." + strconv.FormatInt(timestamp, 10) + "."))
		mac.Write(message)
		signatures[i] = "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	}
	return strings.Join(signatures, " ")
}
