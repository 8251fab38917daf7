package billing

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"purser/fault"
)

// smallestCharge is the provider's minimum charge in the currency's smallest unit. A
// smaller invoice counts as paid there and is carried over to the next one: credits
// without money.
//
// For an unlisted currency the minimum is that of the account's settlement currency,
// which depends on an exchange rate: any amount passes here and the provider decides.
var smallestCharge = map[string]int64{
	"aed": 200, "ars": 50, "aud": 50, "bgn": 100, "brl": 50, "cad": 50, "chf": 50, "cop": 50,
	"czk": 1500, "dkk": 250, "eur": 50, "gbp": 30, "hkd": 400, "huf": 17500, "idr": 50, "ils": 50,
	"inr": 50, "jpy": 50, "krw": 50, "mxn": 1000, "myr": 200, "nok": 300, "nzd": 50, "php": 50,
	"pln": 200, "ron": 200, "rub": 50, "sek": 300, "sgd": 50, "thb": 1000, "usd": 50, "zar": 50,
}

// currencies are the ISO 4217 codes of money in circulation, without metals, funds and
// test codes.
var currencies = func() map[string]bool {
	known := map[string]bool{}
	for _, code := range strings.Fields(`
		aed afn all amd ang aoa ars aud awg azn bam bbd bdt bgn bhd bif bmd bnd bob brl bsd btn bwp byn bzd cad cdf chf clp cny cop
		crc cuc cup cve czk djf dkk dop dzd egp ern etb eur fjd fkp gbp gel ghs gip gmd gnf gtq gyd hkd hnl hrk htg huf idr ils inr
		iqd irr isk jmd jod jpy kes kgs khr kmf kpw krw kwd kyd kzt lak lbp lkr lrd lsl lyd mad mdl mga mkd mmk mnt mop mru mur mvr
		mwk mxn myr mzn nad ngn nio nok npr nzd omr pab pen pgk php pkr pln pyg qar ron rsd rub rwf sar sbd scr sdg sek sgd shp sle
		sll sos srd ssp std stn svc syp szl thb tjs tmt tnd top try ttd twd tzs uah ugx usd uyu uzs ved ves vnd vuv wst xaf xcd xcg
		xof xpf yer zar zmw zwg zwl`) {
		known[code] = true
	}
	return known
}()

// CurrencyPattern is what a currency code looks like; not every such code is one.
const CurrencyPattern = `^[a-z]{3}$`

// ParseCurrency reads a currency code of ISO 4217 in lower case.
func ParseCurrency(text string) (string, error) {
	if !currencies[text] {
		return "", fault.Newf(fault.InvalidRequest, "%q is not a currency. Use a lower-case ISO 4217 code, such as usd.", text)
	}
	return text, nil
}

// Currencies lists the currencies: first those with a known minimum charge, which most
// plans are sold in, then the others.
func Currencies() []string {
	usual := slices.Sorted(maps.Keys(smallestCharge))
	others := slices.DeleteFunc(slices.Sorted(maps.Keys(currencies)), func(code string) bool { return smallestCharge[code] != 0 })
	return append(usual, others...)
}

// SmallestCharge is the minimum charge in a currency.
func SmallestCharge(currency string) int64 {
	if least, listed := smallestCharge[currency]; listed {
		return least
	}
	return chargeStep(currency)
}

// chargeStep is what an amount has to be a multiple of. The provider counts the
// Icelandic króna and the Ugandan shilling in hundredths although they have none, and
// accepts only two decimals of the three-decimal currencies.
func chargeStep(currency string) int64 {
	switch currency {
	case "isk", "ugx":
		return 100
	case "bhd", "jod", "kwd", "omr", "tnd":
		return 10
	default:
		return 1
	}
}

// Decimals is the number of decimal places of a currency.
func Decimals(currency string) int {
	switch currency {
	case "bif", "clp", "djf", "gnf", "jpy", "kmf", "krw", "mga", "pyg", "rwf", "vnd", "vuv", "xaf", "xof", "xpf":
		return 0
	case "bhd", "jod", "kwd", "omr", "tnd":
		return 3
	default:
		return 2
	}
}

// FormatMoney formats an amount for people, such as "29.00 USD".
func FormatMoney(amountCents int64, currency string) string {
	digits, places := strconv.FormatInt(amountCents, 10), Decimals(currency)
	if missing := places + 1 - len(digits); missing > 0 {
		digits = strings.Repeat("0", missing) + digits
	}
	point := len(digits) - places
	if places > 0 {
		digits = digits[:point] + "." + digits[point:]
	}
	return digits + " " + strings.ToUpper(currency)
}

// CheckCharge refuses an amount that the provider could not charge.
func CheckCharge(amountCents int64, currency string) error {
	if _, err := ParseCurrency(currency); err != nil {
		return err
	}
	if least := SmallestCharge(currency); amountCents < least {
		return fault.Newf(fault.AmountTooSmall, "The minimum charge in %s is %s (amountCents %d).",
			strings.ToUpper(currency), FormatMoney(least, currency), least)
	}
	if step := chargeStep(currency); amountCents%step != 0 {
		return fault.Newf(fault.AmountNotChargeable, "Amounts in %s must be multiples of %d.",
			strings.ToUpper(currency), step)
	}
	return nil
}

func (p Price) check() error {
	if p.Free() {
		_, err := ParseCurrency(p.Currency)
		return err
	}
	return CheckCharge(p.AmountCents, p.Currency)
}
