package cashier_test

import (
	"testing"

	"purser/ids"
	"purser/store/storetest"
)

func TestApplicationsWithoutAPaymentAccountArePruned(t *testing.T) {
	t.Parallel()
	r, url := startAlone(t)
	expired := ids.New().String()
	storetest.Exec(t, url, `INSERT INTO leases (app_id, org_id, name, holder, held_until, fence) VALUES ($1, $2, $3::text, $3::uuid, 1, 1)`,
		r.scope.AppID.String(), r.scope.OrgID.String(), expired)
	r.check(r.cashier.PruneAll(t.Context()))
	if found := storetest.TablesWith(t, url, expired); len(found) > 0 {
		t.Errorf("still in %v", found)
	}
}
