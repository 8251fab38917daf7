package api

import (
	"purser/ids"
	"purser/store"
)

// page is one page of a list; the last has a null cursor.
type page[T any] struct {
	Data   []T     `json:"data"`
	Cursor *string `json:"cursor"`
}

// pageOf reads the page parameters of a list sorted by id.
func (s *Server) pageOf(c *call) (store.Page, error) {
	requested := store.Page{Limit: int(c.query.Int("limit"))}
	if c.query.Has("cursor") {
		position, err := s.cursors.open(c, "", c.query.Text("cursor"), len(requested.Before))
		if err != nil {
			return store.Page{}, err
		}
		copy(requested.Before[:], position)
	}
	return requested, nil
}

func showPage[T, R any](s *Server, c *call, list []T, more bool, show func(T) R, id func(T) ids.ID) page[R] {
	shown := page[R]{Data: showAll(list, show)}
	if more {
		last := id(list[len(list)-1])
		shown.Cursor = s.cursors.seal(c, "", last[:])
	}
	return shown
}

func showAll[T, R any](list []T, show func(T) R) []R {
	shown := make([]R, len(list))
	for i, item := range list {
		shown[i] = show(item)
	}
	return shown
}
