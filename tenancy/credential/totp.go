package credential

import (
	"crypto/hmac"
	"crypto/sha1" // what RFC 6238 and every authenticator use; no collision helps against an HMAC
	"crypto/subtle"
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"io"
	"net/url"
	"strings"
)

// Codes change every half minute. The code of the step before is accepted too, because
// typing and sending take time (RFC 6238, section 5.2); a code of the future is not.
const (
	stepSeconds = 30
	digits      = 6
	seedSize    = 20
)

// Seed is what an authenticator and the server share.
type Seed []byte

func NewSeed(random io.Reader) (Seed, error) {
	seed := make(Seed, seedSize)
	if _, err := io.ReadFull(random, seed); err != nil {
		return nil, fmt.Errorf("credential: no randomness: %w", err)
	}
	return seed, nil
}

// Text is the seed as it is typed into an authenticator, in groups of four.
func (s Seed) Text() string {
	var text strings.Builder
	for i, r := range base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(s) {
		if i > 0 && i%4 == 0 {
			text.WriteByte(' ')
		}
		text.WriteRune(r)
	}
	return text.String()
}

// Address is the seed as authenticators read it from a link or a picture.
func (s Seed) Address(issuer, account string) string {
	return "otpauth://totp/" + url.PathEscape(issuer+":"+account) + "?" + url.Values{
		"secret": {strings.ReplaceAll(s.Text(), " ", "")},
		"issuer": {issuer},
	}.Encode()
}

// Step returns the step that the code is of, if that is the current one or the one before
// and comes after the last one that was used: no code works twice.
func (s Seed) Step(code string, lastUsed, now int64) (step int64, found bool) {
	code = strings.ReplaceAll(strings.TrimSpace(code), " ", "")
	current := now / 1000 / stepSeconds
	for _, candidate := range []int64{current, current - 1} {
		matches := subtle.ConstantTimeCompare([]byte(s.Code(candidate)), []byte(code)) == 1
		if matches && candidate > lastUsed && !found {
			step, found = candidate, true
		}
	}
	return step, found
}

func (s Seed) Code(step int64) string {
	var counter [8]byte
	binary.BigEndian.PutUint64(counter[:], uint64(step))
	mac := hmac.New(sha1.New, s)
	mac.Write(counter[:])
	sum := mac.Sum(nil)
	at := sum[len(sum)-1] & 0xf
	value := binary.BigEndian.Uint32(sum[at:]) & 0x7fffffff
	return fmt.Sprintf("%0*d", digits, value%1_000_000)
}
