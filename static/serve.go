package static

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"time"
)

// ServeBytes answers with content that is in memory, and writes from there. By itself,
// http.ServeContent copies through a buffer of 32 KiB, which a slow client would keep.
func ServeBytes(w http.ResponseWriter, r *http.Request, content []byte) {
	if strings.Contains(r.Header.Get("Range"), ",") {
		r.Header.Del("Range") // several parts would be copied; a server may send the whole instead
	}
	http.ServeContent(inMemory{w, content}, r, "", time.Time{}, bytes.NewReader(content))
}

// inMemory writes parts of its content without a copy.
type inMemory struct {
	http.ResponseWriter
	content []byte
}

// ReadFrom implements io.ReaderFrom.
func (w inMemory) ReadFrom(src io.Reader) (int64, error) {
	part, limited := src.(*io.LimitedReader)
	if !limited {
		return io.Copy(w.ResponseWriter, src)
	}
	from, ours := part.R.(*bytes.Reader)
	if !ours {
		return io.Copy(w.ResponseWriter, src)
	}
	at := len(w.content) - from.Len()
	n, err := w.Write(w.content[at:min(at+int(part.N), len(w.content))])
	return int64(n), err
}
