package sandbox_test

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"sync/atomic"
	"testing"

	"purser/ids"
	"purser/payments/sandbox/persist"
	"purser/payments/sandbox/sandboxtest"
)

// legacyAccounts is an account that is stored as one document until it is first changed.
type legacyAccounts struct {
	sandboxtest.Memory
	document []byte
	opened   atomic.Int64 // how often the document was read
}

func (l *legacyAccounts) withDocument(s persist.Session) persist.Session {
	if s.Head == nil && l.document != nil {
		l.opened.Add(1)
		s.Legacy = l.document
	}
	return s
}

func (l *legacyAccounts) Update(ctx context.Context, app ids.ID, want persist.Want, change func(persist.Session) (persist.Change, error)) error {
	return l.Memory.Update(ctx, app, want, func(s persist.Session) (persist.Change, error) { return change(l.withDocument(s)) })
}

func (l *legacyAccounts) View(ctx context.Context, app ids.ID, want persist.Want, read func(persist.Session) error) error {
	return l.Memory.View(ctx, app, want, func(s persist.Session) error { return read(l.withDocument(s)) })
}

func (l *legacyAccounts) Find(ctx context.Context, app ids.ID, kind, name string, byAlias bool) (key string, found bool, err error) {
	isDocument := false
	err = l.Memory.View(ctx, app, persist.Want{}, func(s persist.Session) error {
		isDocument = s.Head == nil && l.document != nil
		return nil
	})
	if err != nil || isDocument {
		return "", isDocument, err
	}
	return l.Memory.Find(ctx, app, kind, name, byAlias)
}

func TestPageRequestsConvertALegacyAccountOnce(t *testing.T) {
	t.Parallel()
	accounts := &legacyAccounts{}
	r := startWith(t, "2026-03-10", accounts)
	must(t, sandboxtest.Write(t.Context(), accounts, r.app, persist.Change{Replace: true}))
	accounts.document = legacyDocument(t)
	var document struct{ Sessions map[string]any }
	must(t, json.Unmarshal(accounts.document, &document))
	sessions := slices.Sorted(maps.Keys(document.Sessions))
	for range 5 {
		if status, _ := r.visit(r.site() + "/checkout/cs_test_unknown"); status != http.StatusNotFound {
			t.Errorf("an unknown page answers %d", status)
		}
	}
	if status, _ := r.visit(r.site() + "/checkout/" + sessions[0]); status != http.StatusOK {
		t.Errorf("the checkout answers %d", status)
	}
	if got := accounts.opened.Load(); got != 1 {
		t.Errorf("the document was read %d times", got)
	}
}

// legacyDocument is an account as release 0.1.0 stored it.
func legacyDocument(t *testing.T) []byte {
	t.Helper()
	file := ok[*os.File](t)(os.Open("engine/testdata/account-v1.json.gz"))
	defer file.Close()
	return ok[[]byte](t)(io.ReadAll(ok[*gzip.Reader](t)(gzip.NewReader(file))))
}
