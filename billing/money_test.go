package billing

import (
	"testing"

	"pgregory.net/rapid"
)

func TestParseMoney(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text, currency string
		want           int64
	}{
		{"29", "usd", 2900}, {"29.00", "usd", 2900}, {"0.5", "eur", 50}, {"0", "usd", 0},
		{"500", "jpy", 500}, {"5.12", "kwd", 5120}, {"999999.99", "usd", MaxAmountCents}, {"99999999", "jpy", MaxAmountCents},
	} {
		if got, ok := ParseMoney(c.text, c.currency); !ok || got != c.want {
			t.Errorf("ParseMoney(%q, %s) = %d, %t, want %d", c.text, c.currency, got, ok, c.want)
		}
	}
	for _, c := range []struct{ text, currency string }{
		{"29.001", "usd"}, {"500.0", "jpy"}, {"5.1234", "kwd"}, {"1000000", "usd"}, {"100000000", "jpy"},
		{"", "usd"}, {"-1", "usd"}, {"29,00", "usd"}, {"$29", "usd"}, {"29 ", "usd"}, {"1e2", "usd"},
	} {
		if got, ok := ParseMoney(c.text, c.currency); ok {
			t.Errorf("ParseMoney(%q, %s) was read as %d", c.text, c.currency, got)
		}
	}
}

func TestPricesAreReadAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		price := Price{
			AmountCents: rapid.Int64Range(0, MaxAmountCents).Draw(t, "amount"),
			Currency:    rapid.SampledFrom([]string{"usd", "jpy", "kwd", "isk"}).Draw(t, "currency"),
		}
		if got, ok := ParseMoney(price.Decimal(), price.Currency); !ok || got != price.AmountCents {
			t.Fatalf("%d is written as %q, and read as %d", price.AmountCents, price.Decimal(), got)
		}
	})
}
