package pg

import (
	"github.com/google/uuid"

	"purser/ids"
)

// ParseUUID reads an id that is stored as text.
func ParseUUID(text string) (ids.ID, error) {
	id, err := uuid.Parse(text)
	return ids.ID(id), err
}
