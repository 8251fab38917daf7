package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"

	"purser/billing/sandbox/engine"
	"purser/ids"
)

// Documents keeps one document an application: the state of its world.
type Documents interface {
	// Update hands the document to change, or nothing the first time, and keeps
	// what it returns. It runs one change of an application at a time, on all
	// nodes together, and keeps nothing when change fails.
	Update(ctx context.Context, app ids.ID, change func(state []byte) (Document, error)) error
	// View gives the document as it was last kept, or nothing.
	View(ctx context.Context, app ids.ID) (state []byte, err error)
	// Due lists applications whose WakeAt has come, at most so many.
	Due(ctx context.Context, at int64, most int) ([]ids.ID, error)
}

// Document is a world as it is kept, with what others need to know of it without
// reading it. Times are in milliseconds.
type Document struct {
	State       []byte
	ClockOffset int64 // how far the application's clock is ahead of the real one
	WakeAt      int64 // the real time at which something happens by itself; 0 for never
}

// errUnchanged ends an update that found nothing to do.
var errUnchanged = errors.New("sandbox: nothing changed")

// update changes a world. What has come due happens first, each thing at its own
// instant, and what the change makes due at once happens with it.
func (s *Server) update(ctx context.Context, app ids.ID, change func(*engine.World, engine.Moment) error) error {
	waiting := false
	err := s.options.Documents.Update(ctx, app, func(state []byte) (Document, error) {
		w, err := engine.Open(state, s.place(app))
		if err != nil {
			return Document{}, err
		}
		m, err := s.moment(w)
		if err != nil {
			return Document{}, err
		}
		w.Fire(m)
		if err := change(w, m); err != nil {
			return Document{}, err
		}
		w.Fire(m)
		waiting = w.Waiting() > 0 && !w.Held
		return document(w)
	})
	if errors.Is(err, errUnchanged) {
		return nil
	}
	if err == nil && waiting {
		s.dirty.mark(app)
	}
	return err
}

// view looks at a world. When something has come due it is made to happen first,
// so nobody sees a state that should be over.
func (s *Server) view(ctx context.Context, app ids.ID, look func(*engine.World, engine.Moment) error) error {
	state, err := s.options.Documents.View(ctx, app)
	if err != nil {
		return err
	}
	w, err := engine.Open(state, s.place(app))
	if err != nil {
		return err
	}
	m, err := s.moment(w)
	if err != nil {
		return err
	}
	if next, timed := w.Next(); timed && next <= m.Now {
		return s.update(ctx, app, look)
	}
	return look(w, m)
}

func document(w *engine.World) (Document, error) {
	state, err := w.Document()
	if err != nil {
		return Document{}, err
	}
	kept := Document{State: state, ClockOffset: w.Offset}
	if at, found := w.WakeAt(); found {
		kept.WakeAt = max(at, 1)
	}
	return kept, nil
}

// moment is now, by the world's clock, with luck that nobody can guess.
func (s *Server) moment(w *engine.World) (engine.Moment, error) {
	var seed [32]byte
	if _, err := io.ReadFull(s.options.Random, seed[:]); err != nil {
		return engine.Moment{}, fmt.Errorf("sandbox: no randomness: %w", err)
	}
	return engine.Moment{
		Now:    engine.Time(w.Now(s.realNow()) / 1000),
		Random: rand.New(rand.NewChaCha8(seed)),
	}, nil
}

func (s *Server) realNow() int64 { return s.options.Now().UnixMilli() }

// place is where the application's pages lie.
func (s *Server) place(app ids.ID) engine.Place {
	name := app.Format(ids.Application)
	return engine.Place{
		Site:    s.options.BaseURL + "/sandbox/apps/" + name,
		Account: "acct_" + strings.TrimPrefix(name, ids.Application+"_"),
	}
}
