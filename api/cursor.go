package api

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strings"

	"purser/fault"
)

// cursors encodes list positions. A cursor is a position and a MAC over it, the
// operation, the application and the filter: it is valid only for the list it was issued
// for.
type cursors struct {
	key []byte
}

const cursorMAC = 16

func (s cursors) seal(c *call, filter string, position []byte) *string {
	text := base64.RawURLEncoding.EncodeToString(append(position, s.mac(c, filter, position)...))
	return &text
}

// open verifies a cursor and returns its position, which must have the given size.
func (s cursors) open(c *call, filter, text string, size int) ([]byte, error) {
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(text)
	// base64 ignores line breaks; a cursor has exactly one encoding.
	if err != nil || strings.ContainsAny(text, "\r\n") || len(sealed) != size+cursorMAC || !hmac.Equal(sealed[size:], s.mac(c, filter, sealed[:size])) {
		return nil, fault.Newf(fault.InvalidRequest, "Invalid cursor. Start again without it.")
	}
	return sealed[:size], nil
}

func (s cursors) mac(c *call, filter string, position []byte) []byte {
	mac := hmac.New(sha256.New, s.key)
	mac.Write(c.scope.AppID[:])
	mac.Write(position)
	mac.Write([]byte(c.route.path + "\x00" + filter))
	return mac.Sum(nil)[:cursorMAC]
}
