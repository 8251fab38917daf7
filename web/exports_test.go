package web

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"purser/store/storetest"
	"purser/tenancy"
)

// stuckClient reads nothing of a response until it is freed.
type stuckClient struct {
	*httptest.ResponseRecorder
	writing chan<- struct{}
	free    <-chan struct{}
}

func (c stuckClient) Write(part []byte) (int, error) {
	c.writing <- struct{}{}
	<-c.free
	return c.ResponseRecorder.Write(part)
}

// TestUnsentExportsAreBounded holds files in memory that no client reads: an organization
// has two at once, all together three.
func TestUnsentExportsAreBounded(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	member := r.join(t, tenancy.Owner)
	writing, free := make(chan struct{}), make(chan struct{})
	var clients errgroup.Group
	stuck := func() {
		clients.Go(func() error {
			request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, r.orgPath("audit.csv"), nil)
			for _, cookie := range member.cookies {
				request.AddCookie(cookie)
			}
			r.server.Config.Handler.ServeHTTP(stuckClient{httptest.NewRecorder(), writing, free}, request)
			return nil
		})
		<-writing
	}
	stuck()
	stuck()
	refused := member.get(t, r.orgPath("audit.csv"))
	if refused.status != http.StatusTooManyRequests || !strings.Contains(refused.body, "Too many exports") || refused.header.Get("Retry-After") == "" {
		t.Errorf("a third export is answered with %d", refused.status)
	}
	if page := member.get(t, r.orgPath("audit")); page.status != http.StatusOK {
		t.Errorf("a page is answered with %d", page.status)
	}
	other := r.newOrganization(t, "Other")
	storetest.AddMember(t, r.url, tenancy.Member{OrgID: other.ID, UserID: member.user.ID, CreatedAt: r.site.Now(), Access: tenancy.Access{Role: tenancy.Owner}})
	if file := member.get(t, "/o/"+other.Slug+"/audit.csv"); file.status != http.StatusOK {
		t.Errorf("another organization's export is answered with %d", file.status)
	}
	close(free)
	noError(t, clients.Wait())
	if file := member.get(t, r.orgPath("audit.csv")); file.status != http.StatusOK {
		t.Errorf("once they are sent, an export is answered with %d", file.status)
	}
}
