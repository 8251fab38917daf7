package turns

import (
	"context"
	"sync"
)

// Turns lets a number of callers for each key go on at once. The others wait in line.
type Turns[K comparable] struct {
	atOnce int

	mu    sync.Mutex
	lines map[K]*line
}

type line struct {
	places  chan struct{}
	callers int // waiting or going on
}

// New makes the turns for this many callers at once.
func New[K comparable](atOnce int) *Turns[K] {
	return &Turns[K]{atOnce: atOnce, lines: make(map[K]*line)}
}

// Take waits for a turn, which lasts until done is called. A free place is taken even when
// ctx has ended.
func (t *Turns[K]) Take(ctx context.Context, key K) (done func(), err error) {
	l := t.join(key)
	done = func() {
		<-l.places
		t.leave(key, l)
	}
	select {
	case l.places <- struct{}{}:
		return done, nil
	default:
	}
	select {
	case l.places <- struct{}{}:
		return done, nil
	case <-ctx.Done():
		t.leave(key, l)
		return nil, ctx.Err()
	}
}

func (t *Turns[K]) join(key K) *line {
	t.mu.Lock()
	defer t.mu.Unlock()
	l, known := t.lines[key]
	if !known {
		l = &line{places: make(chan struct{}, t.atOnce)}
		t.lines[key] = l
	}
	l.callers++
	return l
}

// leave forgets a key without callers.
func (t *Turns[K]) leave(key K, l *line) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if l.callers--; l.callers == 0 {
		delete(t.lines, key)
	}
}
