package reports

import (
	"testing"

	"purser/ids"
	"purser/metering"
	"purser/tenancy"
)

// BenchmarkNoteUse is what a figure costs the hot path.
func BenchmarkNoteUse(b *testing.B) {
	f, scope := newCounters(), tenancy.Scope{AppID: ids.New()}
	wallets := make([]ids.ID, 1000)
	for i := range wallets {
		wallets[i] = ids.New()
	}
	d := metering.Decision{Verdict: metering.Accepted, New: true}
	d.Event = metering.Event{FeatureID: ids.New(), CreditID: ids.New(), CreatedAt: 1_800_000_000_000, TransactionID: ids.New(), Charge: metering.Charge{Amount: 7}}
	b.ReportAllocs()
	for i := range b.N {
		d.Event.WalletID = wallets[i%len(wallets)]
		f.RecordUsage(scope, &d, false)
	}
}
