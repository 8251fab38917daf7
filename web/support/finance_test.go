package support

import (
	"testing"

	"purser/metering"
	"purser/store/rollups"
)

func TestRefundedCreditsOfTheOverview(t *testing.T) {
	t.Parallel()
	total := func(credits metering.Amount) metering.Total { return metering.Total{}.Plus(credits * 1_000_000_000) }
	rows := creditRows(rollups.Finance{Flows: []rollups.Flow{
		{Credit: "tokens", Kind: metering.EntryTopUp, Came: total(20)},
		{Credit: "tokens", Kind: metering.EntryDispute, Came: total(3), Taken: total(5)}, // one was won
		{Credit: "tokens", Kind: metering.EntryRefund, Taken: total(7)},
		{Credit: "minutes", Kind: metering.EntryGrant, Came: total(1)},
	}}, nil)
	if len(rows) != 2 || rows[0].Refunded.Text != "0" || rows[1].Refunded.Text != "9" || rows[1].Sold.Text != "20" {
		t.Errorf("they are %+v", rows)
	}
}
