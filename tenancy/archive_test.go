package tenancy

import (
	"testing"

	"pgregory.net/rapid"

	"purser/fault"
)

func TestLiveApplicationsAreArchivedWithoutOpenMoney(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		count := rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(1, ImpactLimit+1))
		app := Application{Live: rapid.Bool().Draw(t, "live")}
		i := Impact{
			Keys: count.Draw(t, "keys"), Wallets: count.Draw(t, "wallets"), FreeSubscriptions: count.Draw(t, "free"),
			PaidSubscriptions: count.Draw(t, "paid"), OpenPayments: count.Draw(t, "open"),
		}
		err := app.CheckArchive(i)
		if money := i.PaidSubscriptions+i.OpenPayments > 0; (err != nil) != (app.Live && money) {
			t.Fatalf("live %t with %+v: %v", app.Live, i, err)
		}
		if err != nil && !fault.Is(err, fault.ProviderInUse) {
			t.Fatal(err)
		}
	})
}

func TestOrganizationsAreArchivedAfterTheirApplications(t *testing.T) {
	t.Parallel()
	expect(t, Organization{}.CheckArchive(0), "")
	expect(t, Organization{}.CheckArchive(1), fault.Archived)
}
