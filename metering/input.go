package metering

import (
	"strings"
	"unicode/utf8"

	"purser/fault"
)

// Lengths of texts in characters. The OpenAPI document has the same ones: a test compares
// them.
const (
	MaxKeyLength            = 80
	MaxNameLength           = 120
	MaxUnitLength           = 40
	MaxIdentityLength       = 200
	MaxEventIDLength        = 200
	MaxEntityIDLength       = 200
	MaxIdempotencyKeyLength = 200
	// MaxFeatureLength is what usage may send as its feature: longer than any key, so
	// that an unknown feature is a 404.
	MaxFeatureLength = 100
	// MaxAmountLength is the digits of the largest amount.
	MaxAmountLength = 19
)

// KeyPattern is what a key of the catalog looks like.
const KeyPattern = `^[a-z0-9][a-z0-9_-]*$`

// AmountPattern is how ParseAmount wants an amount written.
const AmountPattern = `^(0|[1-9][0-9]*)$`

// ParseKey reads the key of a credit, a feature or a plan.
func ParseKey(text string) (string, error) {
	if !IsKey(text) {
		return "", fault.Newf(fault.InvalidRequest, "Use 1 to %d characters: a–z, 0–9, - and _. Start with a letter or digit.", MaxKeyLength)
	}
	return text, nil
}

// IsKey reports whether the text matches KeyPattern and is not too long.
func IsKey(text string) bool {
	if text == "" || len(text) > MaxKeyLength || text[0] == '_' || text[0] == '-' {
		return false
	}
	for i := range len(text) {
		c := text[i]
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' && c != '-' {
			return false
		}
	}
	return true
}

// ParseName reads the name of a credit, a feature or a plan.
//
// Texts are kept as they are sent: nothing is trimmed, and only what no database can
// store is refused. So both edges accept the same, and what one stores the other shows
// and saves unchanged.
func ParseName(text string) (string, error) { return parseText(text, "name", MaxNameLength) }

// ParseUnit reads the unit of a credit or a feature.
func ParseUnit(text string) (string, error) { return parseText(text, "unit", MaxUnitLength) }

// ParseIdentity reads the caller's name of a wallet.
func ParseIdentity(text string) (string, error) {
	if IsTombstone(text) {
		return "", fault.Newf(fault.InvalidRequest, "This identity belongs to an erased wallet.")
	}
	return parseText(text, "identity", MaxIdentityLength)
}

// ParseEntityID reads the entity of usage; empty for none.
func ParseEntityID(text string) (string, error) {
	if text == "" {
		return "", nil
	}
	return parseText(text, "entity ID", MaxEntityIDLength)
}

func parseText(text, noun string, limit int) (string, error) {
	switch {
	case text == "":
		return "", fault.Newf(fault.InvalidRequest, "Enter a%s %s.", article(noun), noun)
	case !utf8.ValidString(text) || strings.ContainsRune(text, 0):
		return "", fault.Newf(fault.InvalidRequest, "The %s contains invalid characters. Enter it again.", noun)
	case len(text) > limit && utf8.RuneCountInString(text) > limit:
		return "", fault.Newf(fault.InvalidRequest, "The %s must be %d characters or fewer.", noun, limit)
	}
	return text, nil
}

// article completes "a" before a noun.
func article(noun string) string {
	if strings.ContainsRune("aeio", rune(noun[0])) {
		return "n"
	}
	return ""
}
