package static

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// writes records where the parts of a response lie in memory.
type writes struct {
	*httptest.ResponseRecorder
	parts [][]byte
}

func (w *writes) Write(part []byte) (int, error) {
	w.parts = append(w.parts, part)
	return w.ResponseRecorder.Write(part)
}

func TestServeBytesWritesWithoutCopies(t *testing.T) {
	t.Parallel()
	content := bytes.Repeat([]byte("0123456789abcdef"), 10_000)
	for _, c := range []struct {
		name string
		set  map[string]string
		at   int // in the content
		size int
	}{
		{"whole", nil, 0, len(content)},
		{"a part", map[string]string{"Range": "bytes=100-120000"}, 100, 119_901},
		{"the end", map[string]string{"Range": "bytes=-70000"}, len(content) - 70_000, 70_000},
		{"several parts are the whole", map[string]string{"Range": "bytes=0-70000,80000-150000"}, 0, len(content)},
		{"unchanged", map[string]string{"If-None-Match": `"tag"`}, 0, 0},
		{"outside", map[string]string{"Range": "bytes=900000-"}, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			get := func(serve func(http.ResponseWriter, *http.Request)) *writes {
				w := &writes{ResponseRecorder: httptest.NewRecorder()}
				r := httptest.NewRequest(http.MethodGet, "/", nil)
				for name, value := range c.set {
					r.Header.Set(name, value)
				}
				w.Header().Set("ETag", `"tag"`)
				w.Header().Set("Content-Type", "text/plain")
				serve(w, r)
				return w
			}
			got := get(func(w http.ResponseWriter, r *http.Request) { ServeBytes(w, r, content) })
			if c.size > 0 && (len(got.parts) != 1 || len(got.parts[0]) != c.size || &got.parts[0][0] != &content[c.at]) {
				t.Errorf("%d parts are written, not one from the content", len(got.parts))
			}
			if _, several := c.set["Range"]; several && c.size == len(content) {
				if got.Code != http.StatusOK || !bytes.Equal(got.Body.Bytes(), content) {
					t.Errorf("status %d, %d bytes", got.Code, got.Body.Len())
				}
				return
			}
			want := get(func(w http.ResponseWriter, r *http.Request) {
				http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
			})
			if got.Code != want.Code || !bytes.Equal(got.Body.Bytes(), want.Body.Bytes()) || got.Header().Get("Content-Length") != want.Header().Get("Content-Length") {
				t.Errorf("status %d with %d bytes, not %d with %d", got.Code, got.Body.Len(), want.Code, want.Body.Len())
			}
		})
	}
}
