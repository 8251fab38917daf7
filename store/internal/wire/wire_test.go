package wire

import (
	"encoding/binary"
	"testing"

	"pgregory.net/rapid"

	"purser/metering"
)

// An amount must survive the binary format for every number of digits; what
// Postgres itself makes of the bytes is shown by the tests over a database.
func TestAmountSurvivesTheBinaryFormat(t *testing.T) {
	roundTrip := func(a metering.Amount) (metering.Amount, error) {
		c := NumericColumn
		c.Amount(a)
		size := binary.BigEndian.Uint32(c.data)
		r := NewRow([][]byte{c.data[4:]})
		if int(size) != len(c.data)-4 {
			t.Fatalf("the size of %s is written as %d, and is %d", a, size, len(c.data)-4)
		}
		return r.Amount(), r.err
	}
	edges := []metering.Amount{0, 1, 9_999, 10_000, 10_001, 100_000_000, 9_999_999_999_999_999, 1_000_000_000_000_000_000, metering.MaxAmount}
	for _, a := range edges {
		if got, err := roundTrip(a); err != nil || got != a {
			t.Errorf("%s came back as %s, %v", a, got, err)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		a := metering.Amount(rapid.Uint64Range(0, uint64(metering.MaxAmount)).Draw(t, "amount"))
		if got, err := roundTrip(a); err != nil || got != a {
			t.Fatalf("%s came back as %s, %v", a, got, err)
		}
	})
}

func TestEventIDSurvivesItsStoredForm(t *testing.T) {
	stored := func(id string) []byte {
		c := ByteaColumn
		c.EventID(id)
		return c.data[4:]
	}
	for id, size := range map[string]int{
		"0192f0c1-7d1e-7cc3-98c4-dc0c0c07398f":  17,
		"00000000-0000-0000-0000-000000000000":  17,
		"0192F0C1-7D1E-7CC3-98C4-DC0C0C07398F":  36, // another id than the same in lower case
		"0192f0c17d1e-7cc3-98c4-dc0c0c07398f-":  36,
		"0192f0c1-7d1e-7cc3-98c4-dc0c0c07398g":  36,
		"0192f0c1-7d1e-7cc3-98c4-dc0c0c07398f0": 37,
		"evt_1":                                 5,
		"é":                                     2,
	} {
		r := NewRow([][]byte{stored(id)})
		if got := r.EventID(); got != id || len(r.values[0]) != size {
			t.Errorf("%q is stored in %d bytes and comes back as %q", id, len(r.values[0]), got)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		id := rapid.StringOfN(rapid.RuneFrom([]rune("0123456789abcdefABCDEF-é")), 1, 40, -1).Draw(t, "id")
		r := NewRow([][]byte{stored(id)})
		if got := r.EventID(); got != id {
			t.Fatalf("%q came back as %q", id, got)
		}
	})
}

func FuzzAmountColumn(f *testing.F) {
	f.Add([]byte{0, 1, 0, 0, 0, 0, 0, 0, 0, 7})
	f.Add([]byte{0, 5, 0, 4, 0, 0, 0, 0, 0x27, 0x0f, 0x27, 0x0f, 0x27, 0x0f, 0x27, 0x0f, 0x27, 0x0f})
	f.Fuzz(func(t *testing.T, value []byte) {
		r := NewRow([][]byte{value})
		if a := r.Amount(); a > metering.MaxAmount {
			t.Fatalf("%x was read as %s", value, a)
		}
	})
}
