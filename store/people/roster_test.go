package people_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"purser/ids"
	"purser/store/people"
	"purser/store/storetest"
	"purser/tenancy"
)

func TestARosterReadsInvitationsOnce(t *testing.T) {
	t.Parallel()
	db, url := storetest.Open(t), storetest.URL(t)
	requested, err := tenancy.NewOrganization(ids.New(), "Roster", 1)
	if err != nil {
		t.Fatal(err)
	}
	org := storetest.CreateOrganization(t, url, requested)
	const members = 30
	for n := range members {
		user, err := tenancy.NewUser(ids.New(), ids.New().String()+"@example.com", "Ann", 1)
		if err != nil {
			t.Fatal(err)
		}
		storetest.CreateUser(t, url, user)
		storetest.AddMember(t, url, tenancy.Member{OrgID: org.ID, UserID: user.ID, Access: tenancy.Access{Role: tenancy.Owner}, CreatedAt: int64(n)})
		if n == 0 {
			continue // was not invited
		}
		// Of two invitations of a member who left and came back, the newer is shown.
		storetest.Exec(t, url, `
			INSERT INTO invitations (id, org_id, hash, note, role, permissions, invited_by, created_at, expires_at, closed_at, accepted_by)
			SELECT gen_random_uuid(), $1, decode(repeat(md5(random()::text), 2), 'hex'), 'for ' || $3::text || ' at ' || closed, 'owner', '{}', $2, 0, 9, closed, $2
			FROM unnest(ARRAY[2, 1]) closed`, org.ID, user.ID, fmt.Sprint(n))
	}

	list, err := db.Org(org.ID).Roster(t.Context())
	if err != nil || len(list) != members || list[0].InvitedAs != "" {
		t.Fatalf("got %+v, %v", list, err)
	}
	for n, m := range list[1:] {
		if want := fmt.Sprintf("for %d at 2", n+1); m.InvitedAs != want {
			t.Errorf("member %d was invited as %q, want %q", n+1, m.InvitedAs, want)
		}
	}

	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	rows, _ := conn.Query(t.Context(), `EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) `+people.RosterQuery, org.ID)
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	plan := strings.Join(lines, "\n")
	if scans := regexp.MustCompile(`on invitations .*loops=(\d+)`).FindAllStringSubmatch(plan, -1); len(scans) != 1 || scans[0][1] != "1" {
		t.Errorf("invitations are read more than once:\n%s", plan)
	}
}
