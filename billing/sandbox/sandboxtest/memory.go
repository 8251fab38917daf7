package sandboxtest

import (
	"bytes"
	"context"
	"slices"
	"sync"

	"purser/billing/sandbox"
	"purser/ids"
)

// Memory is sandbox.Documents. The zero value is empty and ready.
type Memory struct {
	mu  sync.Mutex
	all map[ids.ID]*entry
}

type entry struct {
	mu   sync.Mutex
	kept sandbox.Document
}

func (m *Memory) entry(app ids.ID) *entry {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.all == nil {
		m.all = map[ids.ID]*entry{}
	}
	if m.all[app] == nil {
		m.all[app] = &entry{}
	}
	return m.all[app]
}

// Update is sandbox.Documents.Update.
func (m *Memory) Update(_ context.Context, app ids.ID, change func(state []byte) (sandbox.Document, error)) error {
	e := m.entry(app)
	e.mu.Lock()
	defer e.mu.Unlock()
	next, err := change(bytes.Clone(e.kept.State))
	if err == nil {
		e.kept = next
	}
	return err
}

// View is sandbox.Documents.View.
func (m *Memory) View(_ context.Context, app ids.ID) ([]byte, error) {
	return m.Kept(app).State, nil
}

// Kept is the whole document, for a test to look at.
func (m *Memory) Kept(app ids.ID) sandbox.Document {
	e := m.entry(app)
	e.mu.Lock()
	defer e.mu.Unlock()
	kept := e.kept
	kept.State = bytes.Clone(kept.State)
	return kept
}

// Due is sandbox.Documents.Due.
func (m *Memory) Due(_ context.Context, at int64, most int) ([]ids.ID, error) {
	m.mu.Lock()
	apps := make([]ids.ID, 0, len(m.all))
	for app := range m.all {
		apps = append(apps, app)
	}
	m.mu.Unlock()
	apps = slices.DeleteFunc(apps, func(app ids.ID) bool {
		wake := m.Kept(app).WakeAt
		return wake == 0 || wake > at
	})
	return apps[:min(len(apps), most)], nil
}
