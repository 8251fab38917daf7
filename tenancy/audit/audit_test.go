package audit_test

import (
	"slices"
	"strings"
	"testing"

	"purser/ids"
	"purser/tenancy/audit"
)

func chain(org ids.ID, length int) (entries []audit.Entry, head audit.Head) {
	for i := range length {
		e := audit.Next(org, head, audit.Actor{UserID: ids.New(), Name: "ann@example.com", At: int64(i)}, audit.Action{
			Action: "credit.update", Target: "tokens", Before: audit.Fields{"name": "Tokens"}, After: audit.Fields{"name": "Coins"},
		})
		entries, head = append(entries, e), e.Head()
	}
	return entries, head
}

func follow(org ids.ID, entries []audit.Entry, head audit.Head) (differences []string) {
	c := audit.Chain{OrgID: org}
	for _, e := range entries {
		if d := c.Follow(e); d != "" {
			differences = append(differences, d)
		}
	}
	if d := c.End(head); d != "" {
		differences = append(differences, d)
	}
	return differences
}

func TestTheChain(t *testing.T) {
	org := ids.New()
	t.Run("is whole when nobody touched it", func(t *testing.T) {
		for _, length := range []int{0, 1, 5} {
			entries, head := chain(org, length)
			if found := follow(org, entries, head); len(found) > 0 {
				t.Errorf("with %d entries: %v", length, found)
			}
		}
	})
	for name, spoil := range map[string]func([]audit.Entry) []audit.Entry{
		"an entry left out":    func(e []audit.Entry) []audit.Entry { return slices.Delete(e, 2, 3) },
		"the end cut off":      func(e []audit.Entry) []audit.Entry { return e[:4] },
		"the beginning gone":   func(e []audit.Entry) []audit.Entry { return e[1:] },
		"two entries swapped":  func(e []audit.Entry) []audit.Entry { e[1], e[2] = e[2], e[1]; return e },
		"all of it gone":       func([]audit.Entry) []audit.Entry { return nil },
		"another actor":        func(e []audit.Entry) []audit.Entry { e[2].UserID = ids.New(); return e },
		"another name":         func(e []audit.Entry) []audit.Entry { e[2].Name = "bob@example.com"; return e },
		"another time":         func(e []audit.Entry) []audit.Entry { e[2].At++; return e },
		"another address":      func(e []audit.Entry) []audit.Entry { e[2].Address = "::1"; return e },
		"another request":      func(e []audit.Entry) []audit.Entry { e[2].RequestID = ids.New(); return e },
		"another action":       func(e []audit.Entry) []audit.Entry { e[2].Action = "credit.create"; return e },
		"another target":       func(e []audit.Entry) []audit.Entry { e[2].Target = "coins"; return e },
		"another application":  func(e []audit.Entry) []audit.Entry { e[2].AppID = ids.New(); return e },
		"another before":       func(e []audit.Entry) []audit.Entry { e[2].Before = "{}"; return e },
		"another after":        func(e []audit.Entry) []audit.Entry { e[2].After = "{}"; return e },
		"another organization": func(e []audit.Entry) []audit.Entry { e[2].OrgID = ids.New(); return e },
		"a letter moved over": func(e []audit.Entry) []audit.Entry {
			e[2].Action, e[2].Target = strings.TrimSuffix(e[2].Action, "e"), "e"+e[2].Target
			return e
		},
	} {
		t.Run("shows "+name, func(t *testing.T) {
			entries, head := chain(org, 5)
			if found := follow(org, spoil(entries), head); len(found) == 0 {
				t.Error("nothing was found")
			}
		})
	}
}

func TestFactsComeBack(t *testing.T) {
	want := audit.Fields{"name": "a \"b\" <c>\u2028", "unit": ""}
	before, after := audit.Next(ids.New(), audit.Head{}, audit.Actor{}, audit.Action{After: want}).Fields()
	if len(before) != 0 || len(after) != 2 || after["name"] != want["name"] {
		t.Errorf("they came back as %v and %v", before, after)
	}
}
