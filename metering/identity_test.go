package metering

import "testing"

func TestATextNamesAnIdentityByWholeWords(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text, identity string
		want           bool
	}{
		{"Ticket 7201", "7", false}, {"Ticket 7201", "1", false}, {"Customer 7 asked", "7", true}, {"7", "7", true}, {"77 7", "7", true}, {"77 177", "7", false},
		{"user_7, by letter", "user_7", true}, {"user_71", "user_7", false}, {"(ann)", "ann", true}, {"anna asked", "ann", false}, {"Jo\u00e9 asked", "Jo", true}, {"\u5ba2ann\u7684", "ann", true}, {"\u5220\u5f20\u4e09\u7684", "\u5f20\u4e09", true},
		{"", "7", false}, {"aa.aa", "a", false}, {"x-a-a- -a-", "-a-", true}, {"a_7a_7", "a_7", false}, {"\u00e9\u00e9 \u00e9", "\u00e9", true},
	} {
		if got := NamesIdentity(c.text, c.identity); got != c.want {
			t.Errorf("%q names %q: %t", c.text, c.identity, got)
		}
	}
}
