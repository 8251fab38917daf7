package metering

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"purser/fault"
)

func TestKeysMatchTheirPattern(t *testing.T) {
	t.Parallel()
	pattern := regexp.MustCompile(strings.TrimSuffix(KeyPattern, "$") + `\z`)
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[a-z0-9_A-Zé\n -]{0,4}`).Draw(t, "text")
		if long := rapid.SampledFrom([]int{0, MaxKeyLength - 2, MaxKeyLength}).Draw(t, "long"); text != "" {
			text += strings.Repeat("a", long)
		}
		_, err := ParseKey(text)
		if want := pattern.MatchString(text) && len(text) <= MaxKeyLength; want != (err == nil) {
			t.Fatalf("%q: %v", text, err)
		}
	})
}

func TestAmountsMatchTheirPattern(t *testing.T) {
	t.Parallel()
	pattern := regexp.MustCompile(strings.TrimSuffix(AmountPattern, "$") + `\z`)
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[0-9+ -]{0,2}[0-9]{0,19}`).Draw(t, "text")
		_, ok := ParseAmount(text)
		if want := pattern.MatchString(text) && len(text) <= MaxAmountLength; want != ok {
			t.Fatalf("%q is accepted: %t", text, ok)
		}
	})
}

func TestTextsAreKeptAsTheyAreSent(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		parse func(string) (string, error)
		limit int
	}{
		"a name": {ParseName, MaxNameLength}, "a unit": {ParseUnit, MaxUnitLength},
		"an identity": {ParseIdentity, MaxIdentityLength}, "an entity": {ParseEntityID, MaxEntityIDLength},
	} {
		for _, text := range []string{"a", " ", " a ", "a\tb\n", "\x07", "\u202eabc", "é", strings.Repeat("é", c.limit)} {
			if got, err := c.parse(text); err != nil || got != text {
				t.Errorf("%s: %q becomes %q, %v", name, text, got, err)
			}
		}
		for _, text := range []string{strings.Repeat("é", c.limit+1), "a\x00", "\xff"} {
			if _, err := c.parse(text); !fault.Is(err, fault.InvalidRequest) {
				t.Errorf("%s: %q is %v", name, text, err)
			}
		}
		if _, err := c.parse(""); (err == nil) != (name == "an entity") {
			t.Errorf("%s: an empty text is %v", name, err)
		}
	}
}

func TestNewCreditAndNewFeatureRefuseWhatTheirFieldsRefuse(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ key, name, unit string }{
		"a key": {"Gold", "Gold", "coin"}, "a name": {"gold", "", "coin"}, "a unit": {"gold", "Gold", strings.Repeat("u", MaxUnitLength+1)},
	} {
		if _, err := NewCredit(Credit{Key: c.key, Name: c.name, Unit: c.unit}); !fault.Is(err, fault.InvalidRequest) {
			t.Errorf("%s of a credit: %v", name, err)
		}
		if _, err := NewFeature(Feature{Key: c.key, Name: c.name, Unit: c.unit, CreditKey: "gold", QuantityPerUnit: 1}); !fault.Is(err, fault.InvalidRequest) {
			t.Errorf("%s of a feature: %v", name, err)
		}
	}
	made, err := NewFeature(Feature{Key: "chat", Name: " Chat ", Unit: "message", CreditKey: "gold", QuantityPerUnit: 1})
	if err != nil || made.Revision != 1 || made.PricingMode != Fixed || made.Deduplication != DeduplicateNone || made.Name != " Chat " {
		t.Errorf("the feature is %+v, %v", made, err)
	}
	for _, quantity := range []int64{0, -1, MaxQuantity + 1} {
		if _, err := NewFeature(Feature{Key: "chat", Name: "Chat", Unit: "message", CreditKey: "gold", QuantityPerUnit: quantity}); err == nil {
			t.Errorf("a quantity of %d is accepted", quantity)
		}
	}
}
