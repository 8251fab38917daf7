package pg

import (
	"bytes"
	"encoding/binary"

	"purser/ids"
)

// Ids begin with their creation time, so a time range is a range of ids. It is the real
// time; an application's clock may be ahead of it, and is never behind.

// IDAt is the lowest id that can have been created at that time or later.
func IDAt(ms int64) (id ids.ID) {
	if ms <= 0 {
		return id
	}
	var whole [8]byte
	binary.BigEndian.PutUint64(whole[:], uint64(min(ms, 1<<48-1)))
	copy(id[:6], whole[2:])
	return id
}

// TimeOfID is when an id was created.
func TimeOfID(id ids.ID) int64 { return id.Millis() }

// NextID is the id that follows.
func NextID(id ids.ID) ids.ID {
	for i := len(id) - 1; i >= 0; i-- {
		if id[i]++; id[i] != 0 {
			break
		}
	}
	return id
}

// LessID is the order of ids.
func LessID(a, b ids.ID) bool { return bytes.Compare(a[:], b[:]) < 0 }
