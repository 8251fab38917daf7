package keys

import (
	"encoding/binary"
	"hash/crc32"
	"math/bits"
)

// The digits stand in the order of their bytes, so that numbers of one width
// compare as their texts do.
const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

const base = uint64(len(digits))

const (
	randomLength   = 43 // 62^43 is 1.02 × 2^256
	checksumLength = 6  // 62^6 is 13 × 2^32
)

// highest is 2^256 - 1. The texts above it stand for no 256 bits.
const highest = "yhjskwdA6OZ1AL1YmHWZWm8LLG7HjnuCA2j5rOw8Xp1"

var isDigit = func() (table [256]bool) {
	for i := range len(digits) {
		table[digits[i]] = true
	}
	return table
}()

func isRandom(text string) bool {
	for i := range len(text) {
		if !isDigit[text[i]] {
			return false
		}
	}
	return text <= highest
}

// writeRandom writes 256 bits, the highest first, in 43 digits.
func writeRandom(out []byte, number [32]byte) {
	var words [4]uint64
	for i := range words {
		words[i] = binary.BigEndian.Uint64(number[8*i:])
	}
	for i := randomLength - 1; i >= 0; i-- {
		var rest uint64
		for j := range words {
			words[j], rest = bits.Div64(rest, words[j], base)
		}
		out[i] = digits[rest]
	}
}

// writeChecksum writes the CRC-32 (IEEE) of the text, which is certain to change
// when one character does, in 6 digits.
func writeChecksum(out, text []byte) {
	rest := uint64(crc32.ChecksumIEEE(text))
	for i := checksumLength - 1; i >= 0; i-- {
		out[i] = digits[rest%base]
		rest /= base
	}
}
