package metering

import (
	"strings"

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

// NamesIdentity reports whether a text has an identity that is not a part of a longer word or
// number, as 7 is of 7201. Scripts without spaces between words have no such parts.
func NamesIdentity(text, identity string) bool {
	if identity == "" {
		return false
	}
	for from := 0; ; {
		at := strings.Index(text[from:], identity)
		if at < 0 {
			return false
		}
		start := from + at
		end := start + len(identity)
		if !isInsideWord(text, start) && !isInsideWord(text, end) {
			return true
		}
		from = start + 1
	}
}

// isInsideWord reports whether a place is between two letters or digits of ASCII.
func isInsideWord(text string, at int) bool {
	return at > 0 && at < len(text) && isWordByte(text[at-1]) && isWordByte(text[at])
}

func isWordByte(b byte) bool {
	return b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z'
}
