package ids

import (
	"encoding/binary"
	"errors"
	"strings"

	"github.com/google/uuid"
)

// ID is a UUIDv7. Its zero value names nothing.
type ID [16]byte

// The prefix of an identifier says what it names.
const (
	Organization    = "org"
	Application     = "app"
	APIKey          = "key"
	User            = "usr"
	Credit          = "crd"
	Feature         = "ftr"
	Plan            = "pln"
	Subscription    = "sub"
	Wallet          = "wal"
	Deposit         = "dep"
	Transaction     = "txn"
	Checkout        = "chk"
	Request         = "req"
	Session         = "ses"
	Invitation      = "inv"
	Alert           = "alr"
	Notification    = "ntf"
	WebhookEndpoint = "whe"
	DeliveryAttempt = "att"
	Denial          = "dny"
)

// New makes an identifier that sorts after the earlier ones of this process.
func New() ID {
	if now := clock.Load(); now != nil {
		return newAt((*now)())
	}
	return ID(uuid.Must(uuid.NewV7()))
}

// IsZero reports whether the id names nothing.
func (id ID) IsZero() bool { return id == ID{} }

// Millis is when the id was created, in milliseconds since 1970.
func (id ID) Millis() int64 { return int64(binary.BigEndian.Uint64(id[:8]) >> 16) }

// String is the plain UUID form, as Postgres prints it.
func (id ID) String() string { return uuid.UUID(id).String() }

// The alphabet of Crockford's base32, in the lower case that TypeID asks for.
const alphabet = "0123456789abcdefghjkmnpqrstvwxyz"

// textLength is what 128 bits take in base32, with two zero bits in front.
const textLength = 26

var digit = func() (table [256]byte) {
	for i := range table {
		table[i] = 0xff
	}
	for i := range alphabet {
		table[alphabet[i]] = byte(i)
	}
	return table
}()

// Format writes the id as a TypeID, such as "wal_01jq…".
func (id ID) Format(prefix string) string {
	out := make([]byte, len(prefix)+1+textLength)
	copy(out, prefix)
	out[len(prefix)] = '_'
	text := out[len(prefix)+1:]
	// From the last digit to the first: five bits each, taken across bytes.
	carry, held, next := uint(0), 0, len(id)-1
	for i := textLength - 1; i >= 0; i-- {
		if held < 5 && next >= 0 {
			carry |= uint(id[next]) << held
			held += 8
			next--
		}
		text[i] = alphabet[carry&31]
		carry >>= 5
		held -= 5
	}
	return string(out)
}

// ErrMalformed is returned for text that is not an identifier of the asked kind.
var ErrMalformed = errors.New("ids: malformed identifier")

// Parse reads a TypeID of the given prefix. Only the form that Format writes is
// accepted, so an id has one spelling.
func Parse(prefix, text string) (ID, error) {
	body, found := strings.CutPrefix(text, prefix+"_")
	if !found || len(body) != textLength || body[0] > '7' {
		return ID{}, ErrMalformed
	}
	var id ID
	carry, held, next := uint(0), 0, len(id)-1
	for i := textLength - 1; i >= 0; i-- {
		value := digit[body[i]]
		if value == 0xff {
			return ID{}, ErrMalformed
		}
		carry |= uint(value) << held
		held += 5
		if held >= 8 && next >= 0 {
			id[next] = byte(carry)
			carry >>= 8
			held -= 8
			next--
		}
	}
	return id, nil
}
