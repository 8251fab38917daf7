package keys

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"purser/fault"
)

const (
	livePrefix = "psr_live_"
	testPrefix = "psr_test_"

	prefixLength = len(livePrefix) // and of testPrefix
	randomEnd    = prefixLength + randomLength
	secretLength = randomEnd + checksumLength
)

// Secret is the full text of a key. It is shown to one person, once, and sent by
// their servers; nothing keeps it. However it is printed, logged or encoded, it
// shows its prefix and its last four characters. The zero value is no secret.
type Secret struct {
	// A pointer, because fmt does not call the methods below for an unexported
	// field of someone's struct: it prints what it finds, here an address.
	text *[secretLength]byte
}

// Mint makes a secret. Of the random source it reads 32 bytes.
func Mint(random io.Reader, live bool) (Secret, error) {
	var number [32]byte
	if _, err := io.ReadFull(random, number[:]); err != nil {
		return Secret{}, fmt.Errorf("keys: reading random bytes: %w", err)
	}
	var text [secretLength]byte
	copy(text[:], prefixOf(live))
	writeRandom(text[prefixLength:randomEnd], number)
	writeChecksum(text[randomEnd:], text[:randomEnd])
	return Secret{&text}, nil
}

// Parse reads what a caller sent as its key. It looks at no more than the
// length of a secret, however long the text is.
func Parse(text string) (Secret, error) {
	switch {
	case text == "":
		return Secret{}, fault.New(fault.MissingAPIKey)
	case strings.HasPrefix(text, "pub_live_"), strings.HasPrefix(text, "pub_test_"):
		return Secret{}, fault.New(fault.UnsupportedKeyKind)
	case len(text) != secretLength,
		!strings.HasPrefix(text, livePrefix) && !strings.HasPrefix(text, testPrefix),
		!isRandom(text[prefixLength:randomEnd]):
		return Secret{}, fault.New(fault.InvalidAPIKey)
	}
	// The one allocation: a copy that also lets go of the request's buffer.
	secret := Secret{(*[secretLength]byte)([]byte(text))}
	var want [checksumLength]byte
	writeChecksum(want[:], secret.text[:randomEnd])
	if text[randomEnd:] != string(want[:]) {
		return Secret{}, fault.New(fault.InvalidAPIKey)
	}
	return secret, nil
}

// Reveal is the one way to the full text: for the page that shows it once, and
// the command that prints it once.
func (s Secret) Reveal() string {
	if s.text == nil {
		return ""
	}
	return string(s.text[:])
}

// Live reports whether the secret belongs to a live application.
func (s Secret) Live() bool {
	return s.text != nil && string(s.text[:prefixLength]) == livePrefix
}

// Last4 is what people tell their keys apart by. It is part of the checksum, so
// it leaves at least 232 of the 256 bits unknown.
func (s Secret) Last4() string {
	if s.text == nil {
		return ""
	}
	return string(s.text[secretLength-4:])
}

// Hash is what is kept of a secret. A fast hash is right for 256 random bits:
// there is nothing to guess from.
type Hash [sha256.Size]byte

// Hash is the SHA-256 of the full text; of no secret it is zero, as no key's is.
func (s Secret) Hash() Hash {
	if s.text == nil {
		return Hash{}
	}
	return sha256.Sum256(s.text[:])
}

// Matches compares in constant time, so that a reply's delay tells nothing about
// the hash that is kept.
func (h Hash) Matches(other Hash) bool { return subtle.ConstantTimeCompare(h[:], other[:]) == 1 }

// String shows the secret as people may see it, such as "psr_live_…9fQ2".
func (s Secret) String() string {
	if s.text == nil {
		return "(no secret)"
	}
	return masked(s.Live(), s.Last4())
}

// Format prints String, whatever the verb.
func (s Secret) Format(state fmt.State, _ rune) { io.WriteString(state, s.String()) }

func (s Secret) GoString() string { return s.String() }

func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText encodes String, and with it JSON.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

func masked(live bool, last4 string) string { return prefixOf(live) + "…" + last4 }

func prefixOf(live bool) string {
	if live {
		return livePrefix
	}
	return testPrefix
}
