package web

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	"purser/store/storetest"
	"purser/web/site"
)

func TestRenderError(t *testing.T) {
	t.Parallel()
	server := serveSite(t, Options{})

	t.Run("shows a missing page as 404 with the request id", func(t *testing.T) {
		response, body := ask(t, server, http.MethodGet, "/no/such/page")
		if response.StatusCode != http.StatusNotFound || response.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("status %d, Cache-Control %q", response.StatusCode, response.Header.Get("Cache-Control"))
		}
		if !strings.Contains(body, "Error 404") || !strings.Contains(body, requestID) {
			t.Errorf("the page says neither the status nor the request id:\n%s", body)
		}
	})

	t.Run("answers HEAD of a missing page without a body", func(t *testing.T) {
		response, body := ask(t, server, http.MethodHead, "/no/such/page")
		if response.StatusCode != http.StatusNotFound || body != "" {
			t.Errorf("status %d, %d bytes", response.StatusCode, len(body))
		}
	})

	t.Run("shows nothing of the inside", func(t *testing.T) {
		response, body := ask(t, server, http.MethodGet, "/broken")
		if response.StatusCode != http.StatusInternalServerError || strings.Contains(body, "hunter2") {
			t.Errorf("status %d:\n%s", response.StatusCode, body)
		}
	})

	t.Run("keeps the Allow header of a wrong method", func(t *testing.T) {
		response, body := ask(t, server, http.MethodPost, "/")
		allow := response.Header.Get("Allow")
		if response.StatusCode != http.StatusMethodNotAllowed || !strings.Contains(allow, http.MethodGet) || !strings.Contains(allow, http.MethodHead) {
			t.Errorf("status %d, Allow %q", response.StatusCode, allow)
		}
		if !strings.Contains(body, "Error 405") {
			t.Errorf("the page does not say its status:\n%s", body)
		}
	})

	t.Run("shows a hostile request id as text", func(t *testing.T) {
		recorder := httptest.NewRecorder()
		c := echo.New().NewContext(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/x", nil), recorder)
		if err := New(Options{Options: site.Options{Store: storetest.Open(t)}}).RenderError(c, http.StatusNotFound, "<img src=x onerror=alert(1)>"); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(recorder.Body.String(), "<img src=x") {
			t.Error("the request id is markup")
		}
	})

	t.Run("leaves the request id out when there is none", func(t *testing.T) {
		recorder := httptest.NewRecorder()
		c := echo.New().NewContext(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/x", nil), recorder)
		if err := New(Options{Options: site.Options{Store: storetest.Open(t)}}).RenderError(c, http.StatusNotFound, ""); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(recorder.Body.String(), "Request ID") {
			t.Error("the page names a request id that it does not have")
		}
	})
}
