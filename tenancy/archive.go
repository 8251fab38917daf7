package tenancy

import "purser/fault"

// ImpactLimit is where the counts of an Impact stop: one more means "more than that".
const ImpactLimit = 1000

// Impact is what an application has that archiving it concerns.
type Impact struct {
	Keys              int64 // that work
	Wallets           int64
	PaidSubscriptions int64 // live at the payment provider
	FreeSubscriptions int64
	OpenPayments      int64 // checkouts, top-ups, changes of plan and operations that are not finished
}

// IsArchived reports whether nothing in the application may change.
func (a Application) IsArchived() bool { return a.ArchivedAt != 0 }

// IsArchived reports whether nothing in the organization may change.
func (o Organization) IsArchived() bool { return o.ArchivedAt != 0 }

// CheckArchive refuses to archive a live application in which money can still move: an
// archived one would go on charging customers whose usage it refuses. Money of a test
// application isn't real.
func (a Application) CheckArchive(i Impact) error {
	switch {
	case !a.Live:
		return nil
	case i.PaidSubscriptions > 0:
		return fault.Newf(fault.ProviderInUse, "Customers pay for subscriptions of this application. Cancel them, wait until they have ended, then archive it.")
	case i.OpenPayments > 0:
		return fault.Newf(fault.ProviderInUse, "Payments of this application are still open. Wait until they are paid or have expired (at most 24 hours), then archive it.")
	}
	return nil
}

// CheckArchive refuses to archive an organization that still has active applications.
func (o Organization) CheckArchive(activeApplications int64) error {
	if activeApplications > 0 {
		return fault.Newf(fault.Archived, "This organization has active applications. Archive them first.")
	}
	return nil
}
