package pg

import (
	"strings"

	"purser/ids"
)

// PackUUID parses lower-case hexadecimal in groups of 8, 4, 4, 4 and 12. A UUID in any
// other notation is a different id.
func PackUUID(into []byte, id string) bool {
	if len(id) != 36 {
		return false
	}
	digits := 0
	for i := range len(id) {
		if i == 8 || i == 13 || i == 18 || i == 23 {
			if id[i] != '-' {
				return false
			}
			continue
		}
		value := strings.IndexByte("0123456789abcdef", id[i])
		if value < 0 {
			return false
		}
		into[digits/2] |= byte(value << (4 * (1 - digits%2)))
		digits++
	}
	return true
}

// EncodeEventID is an event id as it is stored. The canonical text of a UUID, the
// recommended form, takes 17 bytes instead of 36: a zero byte, which no text contains,
// and the UUID. Every other id is its text. The sort order is the same either way.
func EncodeEventID(id string) []byte {
	var short [17]byte
	if !PackUUID(short[1:], id) {
		return []byte(id)
	}
	return short[:]
}

// EventIDOf reads an event id as it is stored.
func EventIDOf(v []byte) string {
	if len(v) == 17 && v[0] == 0 {
		return ids.ID(v[1:]).String()
	}
	return string(v)
}
