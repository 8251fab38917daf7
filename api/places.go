package api

import (
	"sync"

	"purser/fault"
	"purser/ids"
)

// places counts the requests under way. Beyond the limit a request is refused
// before anything was done with it: a longer queue would only make every answer
// late. One application can take half of the places, so that it cannot shut the
// others out.
type places struct {
	limit int

	mu    sync.Mutex
	taken int
	apps  map[ids.ID]int
}

func newPlaces(limit int) *places { return &places{limit: limit, apps: make(map[ids.ID]int)} }

// enter takes a place for a request of an application.
func (p *places) enter(app ids.ID) (leave func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken >= p.limit || p.apps[app] >= max(1, p.limit/2) {
		return nil, fault.New(fault.Overloaded)
	}
	p.taken++
	p.apps[app]++
	return func() { p.leave(app) }, nil
}

func (p *places) leave(app ids.ID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken--
	if p.apps[app]--; p.apps[app] == 0 {
		delete(p.apps, app)
	}
}
