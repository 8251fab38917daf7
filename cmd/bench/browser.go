package main

import (
	"context"
	"encoding/hex"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"

	"purser/ids"
)

// browser is an HTTP client that is signed in to the dashboard of a node.
type browser struct {
	client *http.Client
	host   string
	org    string // paths
	app    string
}

// maxPage is more than any page and any file has.
const maxPage = 16 << 20

// signUp makes the first account of a node through the link that its server has
// printed, and takes over the tenant that the command line has made.
func (n *node) signUp(ctx context.Context, t *tenant) (*browser, error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, err
	}
	client := &browser{client: &http.Client{Jar: jar}, host: n.host}
	path, err := client.send(ctx, n.setup, url.Values{
		"name": {"Bench"}, "email": {"bench@example.com"}, "password": {"a long run with much load"},
		"organization": {orgName}, "application": {t.name},
	})
	if err != nil {
		return nil, n.explain(err)
	}
	client.app = strings.TrimSuffix(path, "/quickstart")
	client.org, _, _ = strings.Cut(client.app, "/a/")
	return client, nil
}

// hiddenField is what the server expects back from its form. There is none before sign-in.
var hiddenField = regexp.MustCompile(`name="(form_token|version)" value="([^"]+)"`)

// send submits the form of a page and returns the path of the response.
func (client *browser) send(ctx context.Context, path string, fields url.Values) (string, error) {
	_, page, err := client.get(ctx, path)
	if err != nil {
		return "", err
	}
	for _, field := range hiddenField.FindAllStringSubmatch(page, -1) {
		if !fields.Has(field[1]) { // of the first form on the page
			fields.Set(field[1], html.UnescapeString(field[2]))
		}
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+client.host+path, strings.NewReader(fields.Encode()))
	if err != nil {
		return "", err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	end, answer, err := client.do(request)
	if err == nil && end == path && !strings.Contains(answer, formSaved) {
		err = fmt.Errorf("the form on %s was not taken", path)
	}
	return end, err
}

// formSaved is in a page that comes back after its own form was taken.
const formSaved = " saved."

// get reads a page and returns its path, which a redirect may change.
func (client *browser) get(ctx context.Context, path string) (end, page string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+client.host+path, nil)
	if err != nil {
		return "", "", err
	}
	return client.do(request)
}

func (client *browser) do(request *http.Request) (end, page string, err error) {
	response, err := client.client.Do(request)
	if err != nil {
		return "", "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxPage))
	if err != nil {
		return "", "", err
	}
	if response.StatusCode != http.StatusOK {
		return "", "", fmt.Errorf("%s %s answered %s", request.Method, request.URL.Path, response.Status)
	}
	return response.Request.URL.Path, string(body), nil
}

// wireID reads an id as psql shows it and writes it as addresses have it.
func wireID(prefix, text string) (string, error) {
	var id ids.ID
	if n, err := hex.Decode(id[:], []byte(strings.ReplaceAll(text, "-", ""))); err != nil || n != len(id) {
		return "", fmt.Errorf("psql answered %q instead of an id", text)
	}
	return id.Format(prefix), nil
}
