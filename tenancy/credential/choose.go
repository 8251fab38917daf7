package credential

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"purser/fault"
)

// The bounds of a password, in characters. There is no rule about which ones.
const (
	MinPasswordLength = 12
	MaxPasswordLength = 128
)

// ContextWords are names that a guess at an account of any installation begins with:
// the product and what it is about.
var ContextWords = []string{"purser", "credits", "wallet", "billing", "metering", "dashboard"}

// CheckChoice refuses a password that is easily guessed. Names are what others know of
// the account: the person's address and name, their organizations, and the server.
func CheckChoice(password string, names ...string) error {
	length := utf8.RuneCountInString(password)
	switch {
	case !utf8.ValidString(password):
		return fault.Newf(fault.InvalidRequest, "The password contains invalid characters. Enter it again.")
	case length < MinPasswordLength:
		return fault.Newf(fault.InvalidRequest, "Use at least %d characters. Several words work well.", MinPasswordLength)
	case length > MaxPasswordLength:
		return fault.Newf(fault.InvalidRequest, "Use at most %d characters.", MaxPasswordLength)
	case isCommon(password):
		return fault.Newf(fault.InvalidRequest, "This password is too common. Choose another.")
	case isMadeOf(password, append(names, ContextWords...)):
		return fault.Newf(fault.InvalidRequest, "This password is too easy to guess: it's based on your name, your organization or the product. Choose another.")
	}
	return nil
}

//go:embed common.txt
var commonText string

// common are words, runs of keys and phrases that guessing begins with.
var common = func() map[string]bool {
	words := map[string]bool{}
	for word := range strings.FieldsSeq(commonText) {
		words[word] = true
	}
	return words
}()

//go:embed breached.txt.gz
var breachedList []byte

// breached are passwords of published breaches, sorted: the 30,000 most frequent and,
// of those that are long enough to be chosen here, the 5,000 most frequent. They are
// from Mark Burnett's list of ten million, which he put into the public domain. The
// strings share the memory of one text.
var breached = sync.OnceValue(func() []string {
	packed, err := gzip.NewReader(bytes.NewReader(breachedList))
	if err != nil {
		panic(fmt.Sprintf("credential: the embedded list of passwords: %v", err))
	}
	text, err := io.ReadAll(packed)
	if err != nil {
		panic(fmt.Sprintf("credential: the embedded list of passwords: %v", err))
	}
	return strings.Fields(string(text))
})

func isBreached(text string) bool {
	_, found := slices.BinarySearch(breached(), text)
	return found
}

// maxDecoration is how many characters around a breached password do not make it a new
// one.
const maxDecoration = 7

// isCommon takes off what people add to a common word to make it longer: capital
// letters, digits and signs around it, figures in place of letters, and the same
// once more.
func isCommon(password string) bool {
	plain := strings.ToLower(password)
	for _, text := range []string{plain, undisguised.Replace(plain), undisguised.Replace(betweenLetters(plain))} {
		letters := betweenLetters(text)
		compact := strings.Map(func(r rune) rune {
			if unicode.IsLetter(r) || unicode.IsDigit(r) {
				return r
			}
			return -1
		}, text)
		for _, candidate := range []string{text, letters, compact} {
			unit := repeated(candidate)
			if common[unit] || isRun(unit) || unit != candidate && len(unit) < 4 {
				return true
			}
			if (isBreached(candidate) || isBreached(unit)) && len(text)-len(candidate) <= maxDecoration {
				return true
			}
		}
		if isPairOfCommon(letters) || isPairOfCommon(compact) {
			return true
		}
	}
	return false
}

// betweenLetters is the text from its first letter to its last.
func betweenLetters(text string) string {
	return strings.TrimFunc(text, func(r rune) bool { return !unicode.IsLetter(r) })
}

var undisguised = strings.NewReplacer("0", "o", "1", "i", "3", "e", "4", "a", "5", "s", "7", "t", "@", "a", "$", "s", "!", "i")

// repeated is the shortest text of which this one is made by saying it again and
// again.
func repeated(text string) string {
	for size := 1; size <= len(text)/2; size++ {
		if len(text)%size == 0 && strings.Repeat(text[:size], len(text)/size) == text {
			return text[:size]
		}
	}
	return text
}

// isRun reports letters or digits that follow each other: 123456789012, abcdefghijkl.
func isRun(text string) bool {
	if len(text) < 6 {
		return false
	}
	step := 0
	for i := 1; i < len(text); i++ {
		next := int(text[i]) - int(text[i-1])
		if next == -9 || next == 9 { // from nine on to zero, and back
			next = -next / 9
		}
		if (next != 1 && next != -1) || (step != 0 && next != step) {
			return false
		}
		step = next
	}
	return true
}

// isPairOfCommon reports two common words in a row: letmeinplease.
func isPairOfCommon(text string) bool {
	for i := 3; i <= len(text)-3; i++ {
		if common[text[:i]] && common[text[i:]] {
			return true
		}
	}
	return false
}

// isMadeOf reports a password that is hardly more than names: fewer than six characters
// are left without them.
func isMadeOf(password string, names []string) bool {
	text := strings.ToLower(password)
	left := text
	for _, known := range names {
		for _, part := range strings.FieldsFunc(strings.ToLower(known), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
			if len(part) >= 3 {
				left = strings.ReplaceAll(left, part, "")
			}
		}
	}
	return left != text && utf8.RuneCountInString(left) < 6
}
