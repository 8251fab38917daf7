package component

import (
	"testing"

	"purser/metering"
)

func TestNumbersAgreeWithTheirNouns(t *testing.T) {
	t.Parallel()
	const credit, day = metering.PerCredit, 24 * 60 * 60 * 1000
	for got, want := range map[string]string{
		Counted(1, "wallet", "wallets"):           "1 wallet",
		Counted(0, "wallet", "wallets"):           "0 wallets",
		Counted(12000, "wallet", "wallets"):       "12,000 wallets",
		CreditsText(credit, "tokens"):             "1 token",
		PerUnits(1, "message"):                    "message",
		PerUnits(1000, "message"):                 "1,000 messages",
		Units(3, "API query"):                     "API queries",
		Units(0, "image"):                         "images",
		Units(2, "batch"):                         "batches",
		Units(2, "GB"):                            "GB",
		Units(2, "day"):                           "days",
		Units(2, "tokens"):                        "tokens",
		CreditsText(credit+1, "tokens"):           "1.000000001 tokens",
		CreditsText(metering.Amount(0), "tokens"): "0 tokens",
		CreditsText(credit, "queries"):            "1 query",
		CreditsText(credit, "gas"):                "1 gas",
		CreditsText(credit, "access"):             "1 access",
		CreditsText(credit, "bonus"):              "1 bonus",
		CreditsText(credit, "compute"):            "1 compute",
		AheadText(31*day + 5):                     "+31 days",
		AheadText(35*day - 5_000):                 "+35 days",
		AheadText(day):                            "+1 day",
		AheadText(day - 1):                        "+23 hours",
		AheadText(60 * 60 * 1000):                 "+1 hour",
		AheadText(90 * 1000):                      "+1 minute",
		AheadText(1):                              "+1 minute",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
