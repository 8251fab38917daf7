package web

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"purser/billing"
	"purser/tenancy"
	"purser/views/component"
)

// formRequest is a form as the browser sends it.
func (b *browser) formRequest(t *testing.T, path string, fields url.Values) *http.Request {
	t.Helper()
	sent := url.Values{component.FormTokenField: {b.formToken}}
	for name, values := range fields {
		sent[name] = values
	}
	request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(sent.Encode()))
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Sec-Fetch-Site", "same-origin")
	for _, cookie := range b.cookies {
		request.AddCookie(cookie)
	}
	return request
}

// TestUnsentRepliesToFormsAreBounded holds replies that show a long form again and that their
// clients do not read.
func TestUnsentRepliesToFormsAreBounded(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	member, other, owner := r.join(t, tenancy.Developer), r.join(t, tenancy.Developer), r.join(t, tenancy.Owner)
	invitation := invitedPath(t, owner.post(t, r.orgPath("members", "invite"), url.Values{"note": {"Bob"}, "role": {"support"}}))
	long := strings.Repeat(`"`, 15_000) // 3 bytes each in the form, 5 on the page
	for name, c := range map[string]struct {
		by, other *browser
		path      string
		fields    url.Values
	}{
		"of a user":    {member, other, r.appPath("credits", "new"), url.Values{"key": {"long"}, "name": {long}}},
		"of a visitor": {r.browser(), other, invitation, url.Values{"name": {long}, "email": {"bob"}}},
	} {
		t.Run(name, func(t *testing.T) {
			writing, free := make(chan struct{}, 1<<20), make(chan struct{})
			var clients errgroup.Group
			send := func(b *browser) *httptest.ResponseRecorder {
				reply := httptest.NewRecorder()
				r.server.Config.Handler.ServeHTTP(reply, b.formRequest(t, c.path, c.fields))
				return reply
			}
			first := send(c.by)
			held, size := 0, first.Body.Len()
			if first.Code != http.StatusUnprocessableEntity || size < 5*len(long) {
				t.Fatalf("status %d, %d bytes", first.Code, size)
			}
			for refused := false; !refused && held*size < 2*unsentPages; {
				request := c.by.formRequest(t, c.path, c.fields)
				clients.Go(func() error {
					r.server.Config.Handler.ServeHTTP(stuckClient{httptest.NewRecorder(), writing, free}, request)
					return nil
				})
				select {
				case <-writing:
				case <-t.Context().Done():
					return
				}
				held++
				refused = send(c.by).Code == http.StatusTooManyRequests
			}
			// A buffer has up to twice the size of what it contains.
			if most := unsentPages / 2 / size; held < most*4/10 || held > most+1 {
				t.Errorf("%d replies of %d bytes are held", held, size)
			}
			if reply := send(c.other); reply.Code == http.StatusTooManyRequests {
				t.Errorf("another user is answered with %d", reply.Code)
			}
			close(free)
			if err := clients.Wait(); err != nil {
				t.Error(err)
			}
			if again := send(c.by); again.Code != http.StatusUnprocessableEntity {
				t.Errorf("once they are sent, the form is answered with %d", again.Code)
			}
		})
	}
}

// TestAFormIsRefusedBeforeItsReplyCouldBe takes all of a user's memory for replies, then sends a
// form whose reply shows a secret.
func TestAFormIsRefusedBeforeItsReplyCouldBe(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.join(t, tenancy.Owner)
	key := keyFields(t, b, "ingestion")
	writing, free := make(chan struct{}, 1<<20), make(chan struct{})
	var clients errgroup.Group
	for _, length := range []int{15_000, 1_000} { // the last replies are small, so that no room is left
		form := url.Values{"key": {"long"}, "name": {strings.Repeat(`"`, length)}}
		for held, refused := 0, false; !refused && held < 2000; held++ {
			request := b.formRequest(t, r.appPath("credits", "new"), form)
			clients.Go(func() error {
				r.server.Config.Handler.ServeHTTP(stuckClient{httptest.NewRecorder(), writing, free}, request)
				return nil
			})
			<-writing
			refused = b.post(t, r.appPath("credits", "new"), form).status == http.StatusTooManyRequests
		}
	}
	if reply := b.post(t, r.appPath("keys", "new"), key); reply.status != http.StatusTooManyRequests {
		t.Errorf("the form is answered with %d", reply.status)
	}
	if made := r.keys(t); len(made) > 0 {
		t.Error("the key exists, and its secret was not shown")
	}
	close(free)
	noError(t, clients.Wait())
	if reply := b.post(t, r.appPath("keys", "new"), key); reply.status != http.StatusOK || secretText.FindString(reply.body) == "" {
		t.Errorf("once the others are sent, the form is answered with %d", reply.status)
	}
}

func TestAPlanFormHasABoundedNumberOfRows(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.join(t, tenancy.Developer)
	for _, list := range []string{"limits", "grants", "multipliers"} {
		key := "feature"
		if list == "grants" {
			key = "credit"
		}
		fields := url.Values{"do": {"add." + list}}
		for i := range billing.MaxPlanItems + 2 {
			fields.Set(list+"."+strconv.Itoa(i)+"."+key, "a")
		}
		if reply := b.post(t, r.appPath("plans", "new"), fields); reply.status != http.StatusRequestEntityTooLarge || !strings.Contains(reply.body, "at most 100 of each kind") {
			t.Errorf("%s: 102 rows are answered with %d", list, reply.status)
		}
		fields.Del(list + "." + strconv.Itoa(billing.MaxPlanItems+1) + "." + key)
		if reply := b.post(t, r.appPath("plans", "new"), fields); reply.status != http.StatusOK {
			t.Errorf("%s: 101 rows are answered with %d", list, reply.status)
		}
	}
}
