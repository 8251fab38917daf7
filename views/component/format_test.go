package component

import (
	"strings"
	"testing"
	"testing/quick"

	"purser/metering"
)

func TestTexts(t *testing.T) {
	t.Parallel()
	for name, texts := range map[string][2]string{
		"no credits":                  {AmountText(0), "0"},
		"one nanocredit":              {AmountText(1), "0.000000001"},
		"whole credits":               {AmountText(1_000 * metering.PerCredit), "1,000"},
		"the largest amount":          {AmountText(metering.MaxAmount), "9,999,999,999.999999999"},
		"a rounded amount":            {RoundedText(4_378_668_271_543), "4,378.67"},
		"half a hundredth":            {RoundedText(1_005_000_000), "1.01"},
		"an amount with two decimals": {RoundedText(1_250_500_000_000), "1,250.5"},
		"a rounded part of a credit":  {RoundedText(333_333_333), "0.3333"},
		"a part that rounds to one":   {RoundedText(999_990_000), "1"},
		"a part that is too small":    {RoundedText(49_999), "<0.0001"},
		"the largest amount, rounded": {RoundedText(metering.MaxAmount), "10,000,000,000"},
		"a time of day, in seconds":   {secondsText(1_794_648_665_123), "09:31:05 UTC"},
		"a small count":               {CountText(999), "999"},
		"a large count":               {CountText(18_446_744_073_709_551_615), "18,446,744,073,709,551,615"},
		"cents":                       {MoneyText(129_000, "usd"), "1,290.00 USD"},
		"money without decimals":      {MoneyText(1_290_000, "jpy"), "1,290,000 JPY"},
		"money that went back":        {MoneyText(-5, "usd"), "−0.05 USD"},
		"a moment":                    {InstantText(1_794_648_660_123), "14 Nov 2026, 09:31 UTC"},
		"a moment, exactly":           {exactInstant(1_794_648_660_123), "2026-11-14T09:31:00.123Z"},
		"the day of a moment":         {DayText(1_794_648_660_123), "14 Nov 2026"},
		"a text that fits":            {ShortText(strings.Repeat("ä", 32)), strings.Repeat("ä", 32)},
		"a text that is one too long": {ShortText(strings.Repeat("ä", 33)), strings.Repeat("ä", 20) + "…" + strings.Repeat("ä", 11)},
		"a text that turns around":    {visible("a\u202eb\x00\u200bc"), `a\u{202e}b\u{0}\u{200b}c`},
		"a text in another script":    {visible("مرحبا"), "مرحبا"},
	} {
		t.Run("writes "+name, func(t *testing.T) {
			t.Parallel()
			if texts[0] != texts[1] {
				t.Errorf("got %q, want %q", texts[0], texts[1])
			}
		})
	}
}

func TestSeries(t *testing.T) {
	t.Parallel()

	t.Run("draws the largest amounts without overflow", func(t *testing.T) {
		t.Parallel()
		bars := Series{Bars: []Bar{{Value: uint64(metering.MaxAmount)}, {Value: uint64(metering.MaxAmount) / 2}}}.drawn()
		if bars[0].slices[0].height != "100.00%" || bars[1].slices[0].height != "50.00%" {
			t.Errorf("heights %+v and %+v", bars[0].slices, bars[1].slices)
		}
	})

	t.Run("shows a bar that is not zero, and none that is", func(t *testing.T) {
		t.Parallel()
		bars := Series{Bars: []Bar{{Value: 1_000_000}, {Value: 1}, {Value: 0}}}.drawn()
		if len(bars[1].slices) != 1 || bars[1].slices[0].height != "0.60%" || len(bars[2].slices) != 0 {
			t.Errorf("heights %+v and %+v", bars[1].slices, bars[2].slices)
		}
	})

	t.Run("accepts days without any use, and no days", func(t *testing.T) {
		t.Parallel()
		if bars := (Series{Bars: []Bar{{}, {}}}).drawn(); len(bars[0].slices) != 0 {
			t.Errorf("%+v", bars[0].slices)
		}
		if bars := (Series{}).drawn(); len(bars) != 0 {
			t.Errorf("%d bars", len(bars))
		}
	})

	t.Run("has round lines above every bar", func(t *testing.T) {
		t.Parallel()
		for highest, top := range map[uint64]uint64{0: 4, 1: 4, 4: 4, 5: 8, 9: 20, 13: 20, 99: 100, 101: 200, 601: 800, 4_385_000_000: 6_000_000_000} {
			s := Series{Bars: []Bar{{Value: highest / 2}, {Value: highest}}}
			if got := s.scale(); got != top {
				t.Errorf("%d has %d at the top, expected %d", highest, got, top)
			}
			if lines := s.lines(); len(lines) != 5 || lines[4].text != "0" || lines[0].at != "0.00%" {
				t.Errorf("lines of %d: %v", highest, s.lines())
			}
		}
		if got := (Series{Bars: []Bar{{Value: 3, Before: 70}}}).scale(); got != 80 {
			t.Errorf("a mark is above the top of %d", got)
		}
	})

	t.Run("stacks parts on each other", func(t *testing.T) {
		t.Parallel()
		s := Series{Parts: []string{"a", "b", "c"}, Bars: []Bar{{Label: "1 Nov", Value: 40, Text: "40", Parts: []Slice{{10, "10"}, {0, "0"}, {30, "30"}}}}}
		bar := s.drawn()[0]
		if len(bar.slices) != 2 || bar.slices[0] != (drawnSlice{"0", "75.00%", "25.00%"}) || bar.slices[1] != (drawnSlice{"2", "0.00%", "75.00%"}) {
			t.Errorf("%+v", bar.slices)
		}
		if strings.Join(bar.lines, "; ") != "1 Nov: 40; a: 10; c: 30" || len(s.columns()) != 5 {
			t.Errorf("%q, %d columns", bar.lines, len(s.columns()))
		}
	})
}

func TestGaugeTone(t *testing.T) {
	t.Parallel()
	for want, gauge := range map[string]Gauge{"": {Used: 79, Of: 100}, "warn": {Used: 80, Of: 100}, "danger": {Used: 100, Of: 100}} {
		if got := gauge.tone(); got != want {
			t.Errorf("%d of %d: %q, want %q", gauge.Used, gauge.Of, got, want)
		}
	}
}

// TestRoundedTextIsNear holds that a shown amount is at most half of its last decimal
// off the exact one.
func TestRoundedTextIsNear(t *testing.T) {
	t.Parallel()
	near := func(nanocredits uint64) bool {
		a := metering.Amount(nanocredits % uint64(metering.MaxAmount))
		shown, ok := metering.ParseCredits(strings.ReplaceAll(strings.TrimPrefix(RoundedText(a), "<"), ",", ""))
		if !ok { // past the largest amount, which is rounded up to 11 digits
			return a > metering.MaxAmount-5_000_000
		}
		half := metering.Amount(5_000_000)
		if a < metering.PerCredit {
			half = 50_000
		}
		return max(a, shown)-min(a, shown) <= half || a < half && shown == 100_000
	}
	if err := quick.Check(near, &quick.Config{MaxCount: 20_000}); err != nil {
		t.Error(err)
	}
	if err := quick.Check(func(n uint64) bool { return near(n % 3_000_000_000) }, &quick.Config{MaxCount: 20_000}); err != nil {
		t.Error(err)
	}
}
