package api

import (
	"context"

	"purser/ids"
	"purser/store"
)

// page is one page of a list; the last has a null cursor.
type page[T any] struct {
	Data   []T     `json:"data"`
	Cursor *string `json:"cursor"`
}

// listPage answers with one page of a list that is sorted by id.
func listPage[T, R any](s *Server, c *call, read func(context.Context, store.Page) ([]T, bool, error), show func(T) R, id func(T) ids.ID) (reply, error) {
	requested := store.Page{Limit: int(c.query.Int("limit"))}
	if c.query.Has("cursor") {
		position, err := s.cursors.open(c, "", c.query.Text("cursor"), len(requested.Before))
		if err != nil {
			return reply{}, err
		}
		copy(requested.Before[:], position)
	}
	list, more, err := read(c.ctx, requested)
	shown := page[R]{Data: showAll(list, show)}
	if more {
		last := id(list[len(list)-1])
		shown.Cursor = s.cursors.seal(c, "", last[:])
	}
	return okOr(shown, err)
}

func showAll[T, R any](list []T, show func(T) R) []R {
	shown := make([]R, len(list))
	for i, item := range list {
		shown[i] = show(item)
	}
	return shown
}
