package fault

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
)

func TestCatalogue(t *testing.T) {
	snake := regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)
	for _, code := range Codes() {
		f := New(code)
		if !snake.MatchString(string(code)) {
			t.Errorf("%s is not in snake case", code)
		}
		if f.Kind() < Invalid || f.Kind() > Internal {
			t.Errorf("%s has no kind", code)
		}
		if f.Kind().Status() == 0 {
			t.Errorf("%s has no status", code)
		}
		if !strings.HasSuffix(f.Message, ".") || len(f.Message) < 20 {
			t.Errorf("%s does not say a sentence: %q", code, f.Message)
		}
	}
}

func TestMeanings(t *testing.T) {
	for _, code := range Codes() {
		meaning := code.Meaning()
		for what, text := range map[string]string{"when it comes": meaning.When, "what to do": meaning.Do} {
			if !strings.HasSuffix(text, ".") || len(text) < 20 {
				t.Errorf("%s: meanings.go does not say %s: %q", code, what, text)
			}
		}
	}
	for code := range meanings {
		if !Known(code) {
			t.Errorf("%s has a meaning and is not in the catalogue", code)
		}
	}
}

func TestIs(t *testing.T) {
	wrapped := fmt.Errorf("reading: %w", Newf(WalletNotFound, "No wallet %q.", "a"))
	if !Is(wrapped, WalletNotFound) {
		t.Error("a wrapped fault is not recognised")
	}
	if Is(wrapped, CreditNotFound) || Is(errors.New("x"), WalletNotFound) || Is(nil, WalletNotFound) {
		t.Error("a fault is recognised where there is none")
	}
}
