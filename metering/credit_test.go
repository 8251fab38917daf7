package metering

import (
	"testing"

	"purser/fault"
	"purser/ids"
)

func to[T any](v T) *T { return &v }

func TestCreditPatch(t *testing.T) {
	gold, err := NewCredit(Credit{ID: ids.New(), Key: "gold", Name: "Gold", Unit: "coin", CreatedAt: 7})
	if err != nil {
		t.Fatal(err)
	}

	t.Run("a change bumps the revision by one", func(t *testing.T) {
		next, err := gold.Patch(CreditPatch{Name: to("Gold coins")})
		if err != nil || next.Revision != 2 || next.Name != "Gold coins" || next.Unit != "coin" {
			t.Errorf("got %+v, %v", next, err)
		}
	})
	t.Run("setting what is there keeps the revision", func(t *testing.T) {
		next, err := gold.Patch(CreditPatch{Name: to("Gold"), Unit: to("coin"), ExpectedRevision: to(int64(1))})
		if err != nil || next != gold {
			t.Errorf("got %+v, %v", next, err)
		}
	})
	t.Run("a stale revision is refused and changes nothing", func(t *testing.T) {
		next, err := gold.Patch(CreditPatch{Name: to("Silver"), ExpectedRevision: to(int64(2))})
		if !fault.Is(err, fault.RevisionConflict) || next != gold {
			t.Errorf("got %+v, %v", next, err)
		}
	})
}
