package component

import (
	"testing"

	"purser/metering"
)

func TestNumbersAgreeWithTheirNouns(t *testing.T) {
	t.Parallel()
	const credit, day = metering.PerCredit, 24 * 60 * 60 * 1000
	for got, want := range map[string]string{
		Counted(1, "wallet", "wallets"):     "1 wallet",
		Counted(0, "wallet", "wallets"):     "0 wallets",
		Counted(12000, "wallet", "wallets"): "12,000 wallets",
		CreditsText(credit, "tokens"):       "1 token",
		CreditsText(credit+1, "tokens"):     "1.000000001 tokens",
		CreditsText(0, "tokens"):            "0 tokens",
		CreditsText(credit, "queries"):      "1 query",
		CreditsText(credit, "gas"):          "1 gas",
		CreditsText(credit, "access"):       "1 access",
		CreditsText(credit, "bonus"):        "1 bonus",
		CreditsText(credit, "compute"):      "1 compute",
		AheadText(31*day + 5):               "31 days ahead",
		AheadText(35*day - 5_000):           "35 days ahead",
		AheadText(day):                      "1 day ahead",
		AheadText(day - 1):                  "23 hours ahead",
		AheadText(60 * 60 * 1000):           "1 hour ahead",
		AheadText(90 * 1000):                "1 minute ahead",
		AheadText(1):                        "1 minute ahead",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
