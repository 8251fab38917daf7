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
