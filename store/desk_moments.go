package store

import (
	"bytes"
	"encoding/binary"

	"purser/ids"
)

// Ids begin with the moment in which they were made, so a stretch of time is a
// stretch of ids. That moment is the real one; an application's clock may be ahead
// of it, and is never behind.

// idAt is the lowest id that can have been made at the moment or later.
func idAt(ms int64) (id ids.ID) {
	if ms <= 0 {
		return id
	}
	var whole [8]byte
	binary.BigEndian.PutUint64(whole[:], uint64(min(ms, 1<<48-1)))
	copy(id[:6], whole[2:])
	return id
}

// momentOf is when an id was made.
func momentOf(id ids.ID) int64 {
	var whole [8]byte
	copy(whole[2:], id[:6])
	return int64(binary.BigEndian.Uint64(whole[:]))
}

// laterID is the id that follows next.
func laterID(id ids.ID) ids.ID {
	for i := len(id) - 1; i >= 0; i-- {
		if id[i]++; id[i] != 0 {
			break
		}
	}
	return id
}

func lessID(a, b ids.ID) bool { return bytes.Compare(a[:], b[:]) < 0 }
