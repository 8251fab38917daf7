package sandbox

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"

	"purser/billing/sandbox/engine"
	"purser/ids"
)

// A key names its application and proves it: nothing has to be stored, and every
// node knows every key. It has no underscore after its prefix, because tools
// that take Stripe's keys apart expect three parts.
const (
	keyPrefix = "sk_test_"
	idLength  = 26 // of an id in text, without its prefix
	macLength = 32 // in hex digits: 128 bits
)

// Key is the secret key of the application's world.
func (s *Server) Key(app ids.ID) string { return KeyOf(s.options.Secret, app) }

// KeyOf is the key that a server with the secret gives to the application.
func KeyOf(secret []byte, app ids.ID) string {
	name := strings.TrimPrefix(app.Format(ids.Application), ids.Application+"_")
	return keyPrefix + name + proof(secret, name)
}

func proof(secret []byte, name string) string {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte("sandbox key " + name))
	return hex.EncodeToString(mac.Sum(nil))[:macLength]
}

// appOf finds the application of a request to the API: the key is a bearer token
// or, as some tools have it, the name in basic authentication.
func (s *Server) appOf(r *http.Request) (ids.ID, error) {
	key, isBearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !isBearer {
		key, _, _ = r.BasicAuth()
	}
	text, isKey := strings.CutPrefix(key, keyPrefix)
	if !isKey || len(text) != idLength+macLength {
		return ids.ID{}, unauthorized(key)
	}
	name, shown := text[:idLength], text[idLength:]
	app, err := ids.Parse(ids.Application, ids.Application+"_"+name)
	if err != nil || !hmac.Equal([]byte(shown), []byte(proof(s.options.Secret, name))) {
		return ids.ID{}, unauthorized(key)
	}
	admitted, err := s.options.Admits(r.Context(), app)
	if err != nil {
		return ids.ID{}, err
	}
	if !admitted {
		return ids.ID{}, unauthorized(key)
	}
	return app, nil
}

// unauthorized shows as much of a key as finds the mistake and no more.
func unauthorized(key string) *engine.Refusal {
	message := "You did not provide an API key."
	if key != "" {
		message = "Invalid API Key provided: " + strings.ToValidUTF8(key[:min(len(key), len(keyPrefix))], "?") + "****"
	}
	return &engine.Refusal{Status: http.StatusUnauthorized, Type: "invalid_request_error", Message: message}
}
