package credential

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/base64"
	"fmt"
	"io"
	"strings"
)

// Token is a single-use bearer secret: a link or a recovery code. Only its hash is
// stored; it has enough entropy for a fast hash.
type Token string

// Hash is what is kept of a token.
type Hash [sha256.Size]byte

const (
	linkSize     = 32
	recoverySize = 16
	// RecoveryCodes is how many are made at once.
	RecoveryCodes = 10
)

// NewLink creates the secret part of a link.
func NewLink(random io.Reader) (Token, error) {
	secret := make([]byte, linkSize)
	if _, err := io.ReadFull(random, secret); err != nil {
		return "", fmt.Errorf("credential: no randomness: %w", err)
	}
	return Token(base64.RawURLEncoding.EncodeToString(secret)), nil
}

// ParseLink refuses what NewLink does not create, so that it is not looked up.
func ParseLink(text string) (link Token, ok bool) {
	secret, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(secret) != linkSize || len(text) != base64.RawURLEncoding.EncodedLen(linkSize) {
		return "", false
	}
	return Token(text), true
}

// NewRecoveryCodes makes the codes that stand in for a lost authenticator, in a
// form that can be written on paper.
func NewRecoveryCodes(random io.Reader) ([]Token, error) {
	codes := make([]Token, RecoveryCodes)
	for i := range codes {
		secret := make([]byte, recoverySize)
		if _, err := io.ReadFull(random, secret); err != nil {
			return nil, fmt.Errorf("credential: no randomness: %w", err)
		}
		text := strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(secret))
		codes[i] = Token(text[:7] + "-" + text[7:13] + "-" + text[13:20] + "-" + text[20:])
	}
	return codes, nil
}

// ParseRecoveryCode parses a typed code: dashes, spaces and capital
// letters make no difference.
func ParseRecoveryCode(text string) Token {
	plain := strings.Map(func(r rune) rune {
		if r == '-' || r == ' ' {
			return -1
		}
		return r
	}, strings.ToLower(text))
	if len(plain) != 26 {
		return ""
	}
	return Token(plain[:7] + "-" + plain[7:13] + "-" + plain[13:20] + "-" + plain[20:])
}

func (t Token) Hash() Hash { return sha256.Sum256([]byte(t)) }
