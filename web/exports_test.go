package web

import (
	"mime"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"purser/ids"
	"purser/metering"
	"purser/store"
	"purser/store/storetest"
	"purser/tenancy"
	"purser/web/site"
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

// fileName is what a browser calls the file.
func fileName(t *testing.T, file seen) string {
	t.Helper()
	_, sent, err := mime.ParseMediaType(file.header.Get("Content-Disposition"))
	if err != nil || file.status != http.StatusOK {
		t.Fatalf("status %d, %v", file.status, err)
	}
	return sent["filename"]
}

func TestTheNameOfAFileSaysWhichRowsItHas(t *testing.T) {
	t.Parallel()
	d := newSupportHarness(t)
	support := d.join(t, tenancy.Support)
	noError(t, d.tenant.CreateCredit(t.Context(), metering.Credit{ID: ids.New(), Key: "other", Name: "Other", Unit: "other", Revision: 1, CreatedAt: d.site.Now()}))
	at := time.UnixMilli(d.site.Now()).UTC()
	_, _, err := d.tenant.Deposit(t.Context(), store.Deposit{ID: ids.New(), Identity: "ann", CreditKey: "other", Amount: 7, IdempotencyKey: new("other"), CreatedAt: at.UnixMilli()})
	noError(t, err)
	d.deposit(t, "ann", 1)
	add := func(rows int) {
		storetest.Exec(t, d.url, `
			INSERT INTO journal (app_id, id, org_id, wallet_id, seq, kind, credit_id, delta_nanocredits, balance_after, debt_after, created_at)
			SELECT j.app_id, gen_random_uuid(), j.org_id, j.wallet_id, j.seq + n, j.kind, j.credit_id, 1, j.balance_after + n, 0, j.created_at
			FROM (SELECT * FROM journal WHERE app_id = $1 ORDER BY seq DESC LIMIT 1) j, generate_series(1, $2::int) n`, d.app.ID, rows)
	}
	deposits, journal := d.appPath("deposits.csv"), d.walletPath(t, "ann")+"/journal.csv"
	for _, c := range []struct {
		rows  int // that are added
		names map[string]string
	}{
		{9_998, map[string]string{deposits: "deposits-2", deposits + "?sort=oldest": "deposits-2", journal: "journal-ann-2"}},
		{1, map[string]string{deposits: "deposits-newest-10000-2", deposits + "?sort=oldest": "deposits-oldest-10000-2", journal: "journal-ann-newest-10000-2"}},
	} {
		add(c.rows)
		for path, want := range c.names {
			if name := fileName(t, support.get(t, path)); !strings.Contains(name, want) {
				t.Errorf("%s is called %s, expected %s", path, name, want)
			}
		}
	}
	storetest.Exec(t, d.url, `UPDATE journal SET created_at = $2 WHERE app_id = $1`, d.app.ID, at.UnixMilli())
	storetest.Exec(t, d.url, `UPDATE wallets SET last_seq = (SELECT max(seq) FROM journal j WHERE j.app_id = $1) WHERE app_id = $1`, d.app.ID)
	part := support.get(t, journal+"?month="+at.Format("2006-01"))
	if name := fileName(t, part); !strings.Contains(name, "-newest-10000-2") || !strings.Contains(part.body, ",closing balance,,other,,7,0,") {
		t.Errorf("a part of a statement is called %s, or lacks the balance of a credit whose entries are not in it", name)
	}
}

func TestTheNameOfAFileSaysThatItLacksPackedMonths(t *testing.T) {
	t.Parallel()
	d := newSupportHarness(t)
	support := d.join(t, tenancy.Support)
	d.deposit(t, "ann", 10)
	packed, kept := d.use("ann", "messages", 1), d.use("ann", "messages", 1)
	d.track(t, packed)
	d.track(t, kept)
	page, file := d.appPath("events"), d.appPath("events.csv")
	if name := fileName(t, support.get(t, file)); !strings.Contains(name, "-events-2") {
		t.Errorf("all of it is called %s", name)
	}
	storetest.Exec(t, d.url, `
		INSERT INTO packed_runs (app_id, run, org_id, before, scanned, indexed, done, last_tx, events, started_at)
		SELECT app_id, 1, org_id, 1, $2, true, true, $2, 1, 1 FROM app_state WHERE app_id = $1`, d.app.ID, packed.TransactionID)
	tomorrow := "?from=" + time.UnixMilli(d.site.Now()).UTC().Add(24*time.Hour).Format("2006-01-02")
	for query, lacks := range map[string]bool{"": true, "?feature=messages": true, "?identity=ann": false, "?event=" + packed.EventID: false, tomorrow: false} {
		got := support.get(t, file+query)
		if name := fileName(t, got); strings.Contains(name, "-events-without-packed-months-2") != lacks {
			t.Errorf("%s is called %s", query, name)
		}
		if in := strings.Contains(got.body, packed.EventID); in != !lacks && query != tomorrow {
			t.Errorf("%s has the packed event: %t", query, in)
		}
		if got := support.get(t, page+query); strings.Contains(got.body, "in this list or its CSV") != lacks {
			t.Errorf("the page %s says that it lacks events: %t", query, !lacks)
		}
	}
}

// An entry that comes while a statement is read is in it, with the balance after it. Here it
// is made by a clock that is ahead of the page's.
func TestAStatementAddsUp(t *testing.T) {
	t.Parallel()
	d := newSupportHarness(t)
	support := d.join(t, tenancy.Support)
	noError(t, d.tenant.CreateCredit(t.Context(), metering.Credit{ID: ids.New(), Key: "other", Name: "Other", Unit: "other", Revision: 1, CreatedAt: d.site.Now()}))
	now := time.UnixMilli(d.site.Now()).UTC()
	d.site.Now = func() int64 { return now.UnixMilli() } // a slow test doesn't come to the entries of then
	deposit := func(at time.Time, credit string, amount metering.Amount) {
		_, _, err := d.tenant.Deposit(t.Context(), store.Deposit{
			ID: ids.New(), Identity: "ann", CreditKey: credit, Amount: amount, IdempotencyKey: new(ids.New().String()), CreatedAt: at.UnixMilli(),
		})
		noError(t, err)
	}
	soon := now.Add(time.Minute)
	first := time.Date(soon.Year(), soon.Month(), 1, 0, 0, 0, 0, time.UTC)
	before := first.Add(-time.Hour)
	deposit(before, "tokens", 10)
	deposit(before, "other", 7)
	deposit(first.Add(10*time.Millisecond), "tokens", 3)
	deposit(first.Add(-50*time.Millisecond), "tokens", 4) // requested before and posted after it
	deposit(soon, "tokens", 5)
	for _, month := range []struct {
		begin, closed time.Time
		want          []string
	}{
		{before, first.Add(-time.Millisecond), []string{"closing balance other  7", "closing balance tokens  10", "deposit other 7 7", "deposit tokens 10 10"}},
		{soon, soon, []string{"closing balance other  7", "closing balance tokens  22", "deposit tokens 5 22", "deposit tokens 4 17", "deposit tokens 3 13",
			"opening balance other  7", "opening balance tokens  10"}},
	} {
		file := support.get(t, d.walletPath(t, "ann")+"/journal.csv?month="+month.begin.Format("2006-01"))
		var kept []string
		for line := range strings.Lines(file.body) {
			cells := strings.Split(line, ",")
			kept = append(kept, strings.Join([]string{cells[3], cells[5], cells[6], cells[7]}, " "))
			if cells[3] == "closing balance" && cells[2] != site.Timestamp(month.closed.UnixMilli()) {
				t.Errorf("the closing balance is of %s", cells[2])
			}
		}
		if want := append([]string{"kind credit nanocredits balance after"}, month.want...); !slices.Equal(kept, want) {
			t.Errorf("it has %q", kept)
		}
	}
}

func TestAFilteredAuditLogIsSearchedInParts(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	owner := r.join(t, tenancy.Owner)
	storetest.Exec(t, r.url, `
		INSERT INTO audit_entries (org_id, number, at, actor, address, action, target, before, after, seal)
		SELECT $1, n, 1, 'x', '', CASE n WHEN 1 THEN 'plan.create' ELSE 'key.create' END, '', '{}', '{}', decode(repeat('00', 32), 'hex')
		FROM generate_series(1, 100001) n`, r.org.ID)
	page := owner.get(t, r.orgPath("audit")+"?action=plan")
	if page.status != http.StatusOK || !strings.Contains(page.body, "No matches so far") || strings.Contains(page.body, "No entries match") ||
		!strings.Contains(page.body, "before=90002") {
		t.Errorf("status %d, the page ends without saying that the search can go on", page.status)
	}
	if page := owner.get(t, r.orgPath("audit")+"?action=plan&before=2"); !strings.Contains(page.body, "plan.create") || strings.Contains(page.body, "so far") {
		t.Error("the last page does not end the search")
	}
	part := owner.get(t, r.orgPath("audit.csv")+"?action=plan")
	if name := fileName(t, part); name != r.org.Slug+"-audit-newest-0-searched-to-2.csv" || strings.Contains(part.body, "plan.create") {
		t.Errorf("a part is called %s", name)
	}
	rest := owner.get(t, r.orgPath("audit.csv")+"?action=plan&before=100001")
	if name := fileName(t, rest); name != r.org.Slug+"-audit-before-100001.csv" || !strings.Contains(rest.body, "plan.create") {
		t.Errorf("the whole is called %s", name)
	}
}

func TestAnAuditLogIsExportedInParts(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	owner := r.join(t, tenancy.Owner)
	add := func(from, to int) {
		storetest.Exec(t, r.url, `
			INSERT INTO audit_entries (org_id, number, at, actor, address, action, target, before, after, seal)
			SELECT $1, n, 1, 'x', '', 'key.create', '', '{}', '{}', decode(repeat('00', 32), 'hex') FROM generate_series($2::int, $3::int) n`, r.org.ID, from, to)
	}
	add(1, 10_000)
	if name := fileName(t, owner.get(t, r.orgPath("audit.csv"))); name != r.org.Slug+"-audit.csv" {
		t.Errorf("all of it is called %s", name)
	}
	add(10_001, 10_001)
	part := owner.get(t, r.orgPath("audit.csv"))
	if name := fileName(t, part); name != r.org.Slug+"-audit-newest-10000.csv" || strings.Count(part.body, "\n") != 10_001 || strings.Contains(part.body, "\n1,") {
		t.Errorf("a part of %d lines is called %s", strings.Count(part.body, "\n"), name)
	}
	rest := owner.get(t, r.orgPath("audit.csv")+"?before=2")
	if name := fileName(t, rest); name != r.org.Slug+"-audit-before-2.csv" || strings.Count(rest.body, "\n") != 2 || !strings.Contains(rest.body, "\n1,") {
		t.Errorf("the rest of %d lines is called %s", strings.Count(rest.body, "\n"), name)
	}
}

// TestAnAuditLogOfLargeEntriesIsExportedInParts has entries of a plan whose lists are full:
// 10,000 of them take more memory than a server has.
func TestAnAuditLogOfLargeEntriesIsExportedInParts(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	owner := r.join(t, tenancy.Owner)
	storetest.Exec(t, r.url, `
		INSERT INTO audit_entries (org_id, number, at, actor, address, action, target, before, after, seal)
		SELECT $1, n, 1, 'x', '', 'plan.update', '', repeat('b', 32000), repeat('a', 32000), decode(repeat('00', 32), 'hex') FROM generate_series(1, 400) n`, r.org.ID)
	part := owner.get(t, r.orgPath("audit.csv"))
	if name := fileName(t, part); name != r.org.Slug+"-audit-newest-263-searched-to-138.csv" || strings.Count(part.body, "\n") != 264 || len(part.body) > 20<<20 {
		t.Errorf("a part of %d lines and %d bytes is called %s", strings.Count(part.body, "\n"), len(part.body), name)
	}
	rest := owner.get(t, r.orgPath("audit.csv")+"?before=138")
	if name := fileName(t, rest); name != r.org.Slug+"-audit-before-138.csv" || strings.Count(rest.body, "\n") != 138 {
		t.Errorf("the rest of %d lines is called %s", strings.Count(rest.body, "\n"), name)
	}
}

// TestComparisonsOfCatalogsAreBounded holds comparisons in memory that no client reads.
func TestComparisonsOfCatalogsAreBounded(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	member := r.join(t, tenancy.Owner)
	live := r.newApplication(t, r.org, "Shop", true)
	path := r.appPath("catalog", "copy") + "?to=" + live.Slug
	writing, free := make(chan struct{}), make(chan struct{})
	var clients errgroup.Group
	for range 2 {
		clients.Go(func() error {
			request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
			for _, cookie := range member.cookies {
				request.AddCookie(cookie)
			}
			r.server.Config.Handler.ServeHTTP(stuckClient{httptest.NewRecorder(), writing, free}, request)
			return nil
		})
		<-writing
	}
	if third := member.get(t, path); third.status != http.StatusTooManyRequests || !strings.Contains(third.body, "Too many catalogs") || third.header.Get("Retry-After") == "" {
		t.Errorf("a third comparison is answered with %d", third.status)
	}
	if form := member.post(t, path, url.Values{"to": {live.Slug}, "confirm": {"no"}}); form.status != http.StatusTooManyRequests {
		t.Errorf("a copy is answered with %d", form.status)
	}
	close(free)
	noError(t, clients.Wait())
	if again := member.get(t, path); again.status != http.StatusOK {
		t.Errorf("once they are sent, it is answered with %d", again.status)
	}
}

// TestReportsOfUsageAreBounded holds reports in memory that no client reads: an organization
// has four at once, all together eight.
func TestReportsOfUsageAreBounded(t *testing.T) {
	t.Parallel()
	d := newSupportHarness(t)
	member, path := d.join(t, tenancy.Support), d.appPath("usage")
	writing, free := make(chan struct{}), make(chan struct{})
	var clients errgroup.Group
	for range 4 {
		clients.Go(func() error {
			request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
			for _, cookie := range member.cookies {
				request.AddCookie(cookie)
			}
			d.server.Config.Handler.ServeHTTP(stuckClient{httptest.NewRecorder(), writing, free}, request)
			return nil
		})
		<-writing
	}
	if fifth := member.get(t, path); fifth.status != http.StatusTooManyRequests || !strings.Contains(fifth.body, "Too many usage reports") || fifth.header.Get("Retry-After") == "" {
		t.Errorf("a fifth report is answered with %d", fifth.status)
	}
	if page := member.get(t, d.appPath("events")); page.status != http.StatusOK {
		t.Errorf("another page is answered with %d", page.status)
	}
	close(free)
	noError(t, clients.Wait())
	if again := member.get(t, path); again.status != http.StatusOK {
		t.Errorf("once they are sent, it is answered with %d", again.status)
	}
}

// TestUnsentPagesAreBounded holds pages in memory that visitors do not read: those of one
// network take half of the limit. Sign-in pages and those of members stay available.
func TestUnsentPagesAreBounded(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	writing, free := make(chan struct{}, 1<<20), make(chan struct{}) // a page is written in parts
	var clients errgroup.Group
	page := func(from string) *http.Request {
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/llms-full.txt", nil)
		request.RemoteAddr = from
		return request
	}
	whole := httptest.NewRecorder()
	r.server.Config.Handler.ServeHTTP(whole, page("192.0.2.1:1"))
	held, size := 0, whole.Body.Len()
	for refused := false; !refused && held*size < 2*unsentPages; {
		clients.Go(func() error {
			r.server.Config.Handler.ServeHTTP(stuckClient{httptest.NewRecorder(), writing, free}, page("192.0.2.1:1"))
			return nil
		})
		select {
		case <-writing:
		case <-t.Context().Done():
			return
		}
		probe := httptest.NewRecorder()
		r.server.Config.Handler.ServeHTTP(probe, page("192.0.2.2:1"))
		held++
		refused = probe.Code == http.StatusTooManyRequests
	}
	if most := unsentPages / 2 / size; held < most*9/10 || held > most+1 {
		t.Errorf("one network holds %d pages of %d bytes", held, size)
	}
	login := httptest.NewRecorder()
	signIn := page("192.0.2.1:1")
	signIn.URL.Path = "/login"
	if r.server.Config.Handler.ServeHTTP(login, signIn); login.Code != http.StatusOK {
		t.Errorf("the network's sign-in page is answered with %d", login.Code)
	}
	signedIn := page("192.0.2.1:1")
	for _, cookie := range r.join(t, tenancy.Support).cookies {
		signedIn.AddCookie(cookie)
	}
	member := httptest.NewRecorder()
	if r.server.Config.Handler.ServeHTTP(member, signedIn); member.Code != http.StatusOK {
		t.Errorf("a member in the network is answered with %d", member.Code)
	}
	other := httptest.NewRecorder()
	r.server.Config.Handler.ServeHTTP(other, page("198.51.100.1:1"))
	if other.Code != http.StatusOK {
		t.Errorf("another network is answered with %d", other.Code)
	}
	close(free)
	noError(t, clients.Wait())
	again := httptest.NewRecorder()
	if r.server.Config.Handler.ServeHTTP(again, page("192.0.2.1:1")); again.Code != http.StatusOK {
		t.Errorf("once they are sent, the network is answered with %d", again.Code)
	}
}
