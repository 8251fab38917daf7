package sandbox

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"math"
	"net/http"
	"strconv"
	"strings"

	"purser/ids"
	"purser/payments/sandbox/engine"
)

// A key holds its application's id and a MAC of it, so that keys are not stored and any
// node can verify them. It has no underscore after its prefix, because tools that parse
// Stripe's keys expect three parts.
const (
	keyPrefix = "sk_test_"
	idLength  = 26 // of an id in text, without its prefix
	macLength = 32 // in hex digits: 128 bits
)

// Key is the secret key of the application's account.
func (s *Server) Key(app ids.ID) string { return KeyOf(s.options.Secret, app) }

// KeyOf derives the application's key from a server's secret.
func KeyOf(secret []byte, app ids.ID) string {
	name := strings.TrimPrefix(app.Format(ids.Application), ids.Application+"_")
	return keyPrefix + name + keyMAC(secret, name)
}

func keyMAC(secret []byte, name string) string {
	return derive(secret, "sandbox key "+name)[:macLength]
}

func derive(secret []byte, purpose string) string {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(purpose))
	return hex.EncodeToString(mac.Sum(nil))
}

// signingSecret is the secret that signs an endpoint's webhooks. That of the server's own
// endpoint is derived from what is stored, which alone signs nothing: one process both sends
// and verifies such a webhook, so nodes with another key, or of release 0.1.0, which signs
// with the stored text, need not agree. Other programs know the stored one.
func (s *Server) signingSecret(outside bool, stored string) string {
	if outside {
		return stored
	}
	return "whsec_" + derive(s.options.Secret, "sandbox webhook "+stored)
}

// requestKey is the API key of a request: a bearer token, or the user name of basic
// authentication.
func requestKey(r *http.Request) string {
	key, isBearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !isBearer {
		key, _, _ = r.BasicAuth()
	}
	return key
}

// authenticate returns the application of a request's API key, without a database read.
func (s *Server) authenticate(r *http.Request) (ids.ID, error) {
	key := requestKey(r)
	text, isKey := strings.CutPrefix(key, keyPrefix)
	if !isKey || len(text) != idLength+macLength {
		return ids.ID{}, unauthorized(key)
	}
	name, shown := text[:idLength], text[idLength:]
	app, err := ids.Parse(ids.Application, ids.Application+"_"+name)
	if err != nil || !hmac.Equal([]byte(shown), []byte(keyMAC(s.options.Secret, name))) {
		return ids.ID{}, unauthorized(key)
	}
	return app, nil
}

// checkAdmitted refuses an application that does not use the sandbox.
func (s *Server) checkAdmitted(ctx context.Context, r *http.Request, app ids.ID) error {
	admitted, err := s.options.Admits(ctx, app)
	if err == nil && !admitted {
		err = unauthorized(requestKey(r))
	}
	return err
}

// checkRate counts a request against the application's rate limit, before any read.
func (s *Server) checkRate(ctx context.Context, app ids.ID, header http.Header) error {
	if s.options.Limit == nil || ctx.Value(internalKey{}) != nil {
		return nil
	}
	wait := s.options.Limit(app, header)
	if wait <= 0 {
		return nil
	}
	header.Set("Retry-After", strconv.FormatInt(int64(math.Ceil(wait.Seconds())), 10))
	return rateLimited
}

var rateLimited = &engine.Refusal{Status: http.StatusTooManyRequests, Type: "invalid_request_error", Code: "rate_limit", Message: "Request rate limit exceeded."}

// unauthorized shows only the prefix of an invalid key.
func unauthorized(key string) *engine.Refusal {
	message := "You did not provide an API key."
	if key != "" {
		message = "Invalid API Key provided: " + strings.ToValidUTF8(key[:min(len(key), len(keyPrefix))], "?") + "****"
	}
	return &engine.Refusal{Status: http.StatusUnauthorized, Type: "invalid_request_error", Message: message}
}
