package metering

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"purser/ids"
)

// erased is the prefix of tombstones, before the "_" of an id.
const erased = "erased"

// Tombstone is the identity of an erased wallet. It is made of a random id, so that it
// can't be linked to the identity before it.
func Tombstone(id ids.ID) string { return id.Format(erased) }

// IsTombstone reports whether an identity is one of an erased wallet. No request may name
// one: for callers the wallet does not exist.
func IsTombstone(identity string) bool {
	if !strings.HasPrefix(identity, erased+"_") {
		return false
	}
	_, err := ids.Parse(erased, identity)
	return err == nil
}

// NamesIdentity reports whether a text has an identity as whole words: a short one may be
// part of a number, as 7 is of 7201.
func NamesIdentity(text, identity string) bool {
	for from := 0; identity != ""; {
		at := strings.Index(text[from:], identity)
		if at < 0 {
			return false
		}
		last, _ := utf8.DecodeLastRuneInString(text[:from+at])
		next, _ := utf8.DecodeRuneInString(text[from+at+len(identity):])
		if !isWordRune(last) && !isWordRune(next) {
			return true
		}
		_, first := utf8.DecodeRuneInString(identity)
		from += at + first
	}
	return false
}

func isWordRune(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
