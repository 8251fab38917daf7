package api

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"
)

// getOpenapi serves the document, to pages of any origin too.
func (s *Server) getOpenapi(ec echo.Context) error {
	asked, header := ec.Request().Header, ec.Response().Header()
	header.Set("ETag", s.document.etag)
	header.Set("Cache-Control", "no-cache")
	header.Set(echo.HeaderVary, echo.HeaderAcceptEncoding)
	header.Set(echo.HeaderAccessControlAllowOrigin, "*")
	header.Set(echo.HeaderAccessControlExposeHeaders, "ETag, X-Request-Id")
	if isNamed(asked.Get("If-None-Match"), s.document.etag) {
		return ec.NoContent(http.StatusNotModified)
	}
	text := s.document.json
	if acceptsGzip(asked) {
		header.Set(echo.HeaderContentEncoding, "gzip")
		text = s.document.gzip
	}
	return ec.Blob(http.StatusOK, echo.MIMEApplicationJSON, text)
}

// etagOf is weak, because it is the same for both encodings.
func etagOf(text []byte) string {
	sum := sha256.Sum256(text)
	return `W/"` + hex.EncodeToString(sum[:16]) + `"`
}

// isNamed reports whether If-None-Match lists the tag.
func isNamed(list, etag string) bool {
	for each := range strings.SplitSeq(list, ",") {
		each = strings.TrimSpace(each)
		if each == "*" || strings.TrimPrefix(each, "W/") == strings.TrimPrefix(etag, "W/") {
			return true
		}
	}
	return false
}

// acceptsGzip reads Accept-Encoding; gzip;q=0 refuses it.
func acceptsGzip(header http.Header) bool {
	for each := range strings.SplitSeq(strings.Join(header.Values(echo.HeaderAcceptEncoding), ","), ",") {
		name, weight, _ := strings.Cut(strings.ReplaceAll(each, " ", ""), ";")
		if strings.EqualFold(name, "gzip") {
			return strings.Trim(strings.TrimPrefix(strings.ToLower(weight), "q="), "0.") != "" || weight == ""
		}
	}
	return false
}

func compress(text []byte) []byte {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = w.Write(text) // a buffer takes everything
	_ = w.Close()
	return packed.Bytes()
}
