package billing

import (
	"testing"

	"pgregory.net/rapid"

	"purser/fault"
)

func TestPeriods(t *testing.T) {
	for _, c := range []struct {
		claim              string
		interval           Interval
		anchor, at         string
		wantStart, wantEnd string
	}{
		{"a month from its first moment", Month, "2024-01-15T10:00:00", "2024-01-15T10:00:00", "2024-01-15T10:00:00", "2024-02-15T10:00:00"},
		{"a month from the 31st ends with a short month", Month, "2024-01-31", "2024-02-10", "2024-01-31", "2024-02-29"},
		{"and returns to the 31st", Month, "2024-01-31", "2024-03-01", "2024-02-29", "2024-03-31"},
		{"a year", Year, "2024-05-03T12:30:00", "2024-12-31", "2024-05-03T12:30:00", "2025-05-03T12:30:00"},
		{"a year turns over at the anchor's time of day", Year, "2024-05-03T12:30:00", "2025-05-03T12:29:59", "2024-05-03T12:30:00", "2025-05-03T12:30:00"},
		{"a year from the leap day ends on the 28th", Year, "2024-02-29", "2024-03-01", "2024-02-29", "2025-02-28"},
		{"and the fourth one on the 29th", Year, "2024-02-29", "2027-03-01", "2027-02-28", "2028-02-29"},
		{"a year from the last of December", Year, "2023-12-31", "2024-12-30", "2023-12-31", "2024-12-31"},
	} {
		if got, want := c.interval.Containing(moment(t, c.anchor), moment(t, c.at)), span(t, c.wantStart, c.wantEnd); got != want {
			t.Errorf("%s: got %v, want %v", c.claim, got, want)
		}
	}
}

func TestPeriodsFollowEachOther(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		interval := rapid.SampledFrom([]Interval{Month, Year}).Draw(t, "interval")
		anchor := rapid.Int64Range(0, 4_000_000_000_000).Draw(t, "anchor")
		at := anchor + rapid.Int64Range(0, 400_000_000_000).Draw(t, "later")
		period := interval.Containing(anchor, at)
		if !period.Contains(at) {
			t.Fatalf("%v does not hold %d", period, at)
		}
		if next := interval.Containing(anchor, period.End); next.Start != period.End {
			t.Fatalf("%v is followed by %v", period, next)
		}
		if first := interval.Containing(anchor, anchor); first.Start != anchor {
			t.Fatalf("the first period is %v, from the anchor %d", first, anchor)
		}
	})
}

func TestCharges(t *testing.T) {
	for _, c := range []struct {
		claim    string
		cents    int64
		currency string
		want     fault.Code
	}{
		{"half a dollar", 50, "usd", ""},
		{"less than half a dollar", 49, "usd", fault.AmountTooSmall},
		{"nothing", 0, "usd", fault.AmountTooSmall},
		{"thirty pence", 30, "gbp", ""},
		{"fifty yen, which have no hundredths", 50, "jpy", ""},
		{"forty-nine yen", 49, "jpy", fault.AmountTooSmall},
		{"a hundred and seventy-five forint", 17500, "huf", ""},
		{"less forint", 17499, "huf", fault.AmountTooSmall},
		{"whole crowns of Iceland", 500, "isk", ""},
		{"parts of a crown of Iceland", 550, "isk", fault.AmountNotChargeable},
		{"less than one crown of Iceland", 99, "isk", fault.AmountTooSmall},
		{"whole shillings of Uganda", 100, "ugx", ""},
		{"dinars to the second place", 1010, "kwd", ""},
		{"dinars to the third place", 1001, "kwd", fault.AmountNotChargeable},
		{"one cent of a currency without a known least", 1, "ttd", ""},
		{"nothing of a currency without a known least", 0, "ttd", fault.AmountTooSmall},
	} {
		t.Run(c.claim, func(t *testing.T) { wantFault(t, CheckCharge(c.cents, c.currency), c.want) })
	}
	t.Run("every smallest charge can be charged", func(t *testing.T) {
		for currency, least := range smallestCharge {
			if err := CheckCharge(least, currency); err != nil {
				t.Errorf("%d %s: %v", least, currency, err)
			}
		}
	})
}

func TestMoneyIsWrittenInItsOwnPlaces(t *testing.T) {
	for want, got := range map[string]string{
		"29.00 USD": FormatMoney(2900, "usd"),
		"0.05 EUR":  FormatMoney(5, "eur"),
		"0.00 USD":  FormatMoney(0, "usd"),
		"500 JPY":   FormatMoney(500, "jpy"),
		"0 JPY":     FormatMoney(0, "jpy"),
		"5.120 KWD": FormatMoney(5120, "kwd"),
		"5.00 ISK":  FormatMoney(500, "isk"),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
