package persist_test

import (
	"testing"

	"purser/payments/sandbox/persist"
)

func TestKeysThatPostgresCannotHoldAreNotStorable(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]bool{
		"customer/cus_1": true, "customer/é": true,
		"customer/\x00": false, "customer/\xff": false, "customer/\xc3(": false,
	} {
		if got := persist.Storable(key); got != want {
			t.Errorf("%q: %t", key, got)
		}
	}
}
