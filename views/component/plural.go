package component

import "strings"

// Noun is the form of a noun that goes with a number.
func Noun(n int64, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// Counted is a number with its noun, such as "1 day" and "12,000 days".
func Counted(n int64, one, many string) string {
	return CountText(uint64(max(n, 0))) + " " + Noun(n, one, many)
}

// Units is the form of a feature's unit that goes with a number: "1 image", "3 images".
// Units are given in the singular. Abbreviations such as GB stay as they are.
func Units(n int64, unit string) string {
	if n == 1 {
		return unit
	}
	return plural(unit)
}

// PerUnits is what a price is for: "message", or "1,000 messages".
func PerUnits(n int64, unit string) string {
	if n == 1 {
		return unit
	}
	return CountText(uint64(max(n, 0))) + " " + plural(unit)
}

// plural is that of the last word of a unit, if it is a plain English word.
func plural(unit string) string {
	word := unit[strings.LastIndexByte(unit, ' ')+1:]
	if len(word) < 3 || strings.ContainsFunc(word, func(r rune) bool { return r < 'a' || r > 'z' }) || strings.HasSuffix(word, "s") {
		return unit
	}
	stem, y := strings.CutSuffix(unit, "y")
	switch {
	case y && !strings.ContainsAny(stem[len(stem)-1:], "aeiou"):
		return stem + "ies"
	case strings.HasSuffix(word, "x"), strings.HasSuffix(word, "ch"), strings.HasSuffix(word, "sh"):
		return unit + "es"
	}
	return unit + "s"
}

// CreditsText is an amount or a total with the key of its credit in a sentence. Most keys
// are plurals, and one of them reads better without.
func CreditsText(a interface{ Credits() string }, creditKey string) string {
	text := separate(a.Credits())
	if text == "1" {
		creditKey = singular(creditKey)
	}
	return text + " " + creditKey
}

// singular leaves alone what may only look like a plural: gas, access, status, analysis.
func singular(word string) string {
	stem, plural := strings.CutSuffix(word, "s")
	if !plural || len(stem) < 3 || strings.ContainsAny(stem[len(stem)-1:], "sui") {
		return word
	}
	if y, ies := strings.CutSuffix(stem, "ie"); ies {
		return y + "y"
	}
	return stem
}

// AheadText is how far a clock is ahead, in the largest unit that fills. Days are
// rounded: who moves a clock by 35 days has moved it by a moment less.
func AheadText(milliseconds int64) string {
	const minute, hour, day = 60_000, 60 * 60_000, 24 * 60 * 60_000
	switch {
	case milliseconds >= day:
		return "+" + Counted((milliseconds+day/2)/day, "day", "days")
	case milliseconds >= hour:
		return "+" + Counted(milliseconds/hour, "hour", "hours")
	default:
		return "+" + Counted(max(milliseconds/minute, 1), "minute", "minutes")
	}
}
