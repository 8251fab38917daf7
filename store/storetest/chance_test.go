package storetest

import (
	"errors"
	"fmt"
	"net"
	"syscall"
	"testing"
	"time"
)

func TestASeedCanBeRepeated(t *testing.T) {
	t.Setenv(seedVariable, "")
	drawn := Seed(t)
	if Seed(t) == drawn {
		t.Error("two runs make the same choices")
	}
	t.Setenv(seedVariable, fmt.Sprint(drawn))
	if Seed(t) != drawn {
		t.Error("the seed is not the given one")
	}
}

func TestTheEndOfAnHourIsAvoided(t *testing.T) {
	t.Parallel()
	before := time.Now().Truncate(time.Second)
	AvoidEndOf(t, time.Second)
	if now := time.Now(); now.Truncate(time.Second).Equal(before) {
		t.Errorf("it is %s, in the second that ends", now)
	}
	for unit := time.Hour; unit <= 24*time.Hour; unit = 24 * unit {
		AvoidEndOf(t, unit)
		if now := time.Now(); now.Add(margin/2).Truncate(unit) != now.Truncate(unit) {
			t.Errorf("it is %s, at the end", now)
		}
	}
}

func TestAClosedPortRefusesConnectionsAndListeners(t *testing.T) {
	t.Parallel()
	address := fmt.Sprint("127.0.0.1:", ClosedPort(t))
	if _, err := net.Dial("tcp", address); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("connecting: %v", err)
	}
	if _, err := net.Listen("tcp", address); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("listening: %v", err)
	}
}
