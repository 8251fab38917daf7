package main

import (
	"testing"
)

func TestFigures(t *testing.T) {
	t.Parallel()
	t.Run("each is made of scenarios that exist", func(t *testing.T) {
		t.Parallel()
		all := samples{}
		for _, name := range scenarioNames() {
			all[name] = []sample{{Rate: 1, P50MS: 1, P99MS: 1, PostgresCPU: 1, Events: 1, StoredBytes: 1, LogBytes: 1}}
		}
		for _, f := range figures {
			if got := f.value(all); got != 1 {
				t.Errorf("%s is %v", f.name, got)
			}
		}
	})
	t.Run("one that was not measured is nothing", func(t *testing.T) {
		t.Parallel()
		for _, f := range figures {
			if got := f.value(samples{}); got != 0 {
				t.Errorf("%s is %v", f.name, got)
			}
		}
	})
	t.Run("bytes are added up before they are divided", func(t *testing.T) {
		t.Parallel()
		all := samples{"a": {{Events: 1, StoredBytes: 500}, {Events: 9, StoredBytes: 0}}, "b": {{Events: 10, StoredBytes: 100}}}
		if got := bytesAnEvent(stored, "a", "b")(all); got != 30 {
			t.Errorf("it is %v", got)
		}
	})
	t.Run("the slowest page is one by its median, and no other scenario", func(t *testing.T) {
		t.Parallel()
		all := samples{
			pagePrefix + "a": {{P99MS: 3}, {P99MS: 4}, {P99MS: 900}},
			pagePrefix + "b": {{P99MS: 5}, {P99MS: 1}, {P99MS: 1}},
			"events-64":      {{P99MS: 70}},
		}
		if got := slowestPage(all); got != 4 {
			t.Errorf("it is %v", got)
		}
	})
	t.Run("a ratio is of medians", func(t *testing.T) {
		t.Parallel()
		all := samples{
			"a": {{Rate: 30}, {Rate: 10}, {Rate: 1000}},
			"b": {{Rate: 10}, {Rate: 20}},
		}
		if got := ratio("a", "b", rate)(all); got != 2 {
			t.Errorf("it is %v", got)
		}
	})
}

func TestVerdicts(t *testing.T) {
	t.Parallel()
	high := figure{floor: 2, aim: 3}
	low := figure{floor: 3, aim: 2, lowIsGood: true}
	for name, c := range map[string]struct {
		figure figure
		value  float64
		want   string
	}{
		"at the aim":                   {high, 3, "aim reached"},
		"just under the aim":           {high, 2.99, "floor held"},
		"at the floor":                 {high, 2, "floor held"},
		"under the floor":              {high, 1.99, "FLOOR MISSED"},
		"low is good, at the aim":      {low, 2, "aim reached"},
		"low is good, at the floor":    {low, 3, "floor held"},
		"low is good, above the floor": {low, 3.01, "FLOOR MISSED"},
		"without a floor":              {figure{}, 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := c.figure.verdict(c.value); got != c.want {
				t.Errorf("%v is %q, not %q", c.value, got, c.want)
			}
		})
	}
}

func TestAccounts(t *testing.T) {
	t.Parallel()
	if err := (accounts{Accepted: 5, Stored: 5}).fault(); err != nil {
		t.Errorf("books that are right: %v", err)
	}
	for name, a := range map[string]accounts{
		"an event that was not stored": {Accepted: 5, Stored: 4},
		"an event that nobody sent":    {Accepted: 5, Stored: 6},
		"a wrong balance":              {WrongBalances: 1},
	} {
		if a.fault() == nil {
			t.Errorf("nothing is said of %s", name)
		}
	}
}
