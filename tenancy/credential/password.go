package credential

import (
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"
)

// What a hash costs today: about 46 MiB and some tens of milliseconds.
const (
	passes    = 2
	memoryKiB = 47_104
	lanes     = 1
	saltSize  = 16
	tagSize   = 32
)

var encoding = base64.RawStdEncoding

// HashPassword makes what is kept of a password: argon2id, in the usual notation.
func HashPassword(password string, random io.Reader) (string, error) {
	salt := make([]byte, saltSize)
	if _, err := io.ReadFull(random, salt); err != nil {
		return "", fmt.Errorf("credential: no randomness: %w", err)
	}
	tag := argon2.IDKey([]byte(password), salt, passes, memoryKiB, lanes, tagSize)
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s",
		argon2.Version, memoryKiB, passes, lanes, encoding.EncodeToString(salt), encoding.EncodeToString(tag)), nil
}

// ErrMalformed is returned for a hash that this package did not make.
var ErrMalformed = errors.New("credential: malformed password hash")

// Check compares a password with its stored hash. Outdated reports that the hash has
// weaker parameters than today's and should be recomputed now. A password over the
// maximum length is wrong without hashing.
func Check(password, encoded string) (right, outdated bool, err error) {
	if utf8.RuneCountInString(password) > MaxPasswordLength {
		return false, false, nil
	}
	var version, memory, time, threads int
	var saltText, tagText string
	// %s stops at white space only, so the rest is cut at its one dollar sign below.
	if _, err := fmt.Sscanf(encoded, "$argon2id$v=%d$m=%d,t=%d,p=%d$%s", &version, &memory, &time, &threads, &saltText); err != nil {
		return false, false, ErrMalformed
	}
	for i := range saltText {
		if saltText[i] == '$' {
			saltText, tagText = saltText[:i], saltText[i+1:]
			break
		}
	}
	salt, saltErr := encoding.DecodeString(saltText)
	tag, tagErr := encoding.DecodeString(tagText)
	if saltErr != nil || tagErr != nil || version != argon2.Version || len(salt) < 8 || len(tag) < 16 ||
		time < 1 || threads < 1 || threads > 255 || memory < 8*threads || memory > 1<<20 {
		return false, false, ErrMalformed
	}
	got := argon2.IDKey([]byte(password), salt, uint32(time), uint32(memory), uint8(threads), uint32(len(tag)))
	right = subtle.ConstantTimeCompare(got, tag) == 1
	return right, memory < memoryKiB || time < passes, nil
}

// Dummy is a hash that no password has. Checking against it costs what any check
// costs, so an address without an account answers as late as one with.
var Dummy = fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, memoryKiB, passes, lanes,
	encoding.EncodeToString(make([]byte, saltSize)), encoding.EncodeToString(make([]byte, tagSize)))
