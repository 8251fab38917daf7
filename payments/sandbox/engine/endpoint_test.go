package engine

import (
	"math/rand/v2"
	"testing"

	"purser/payments/sandbox/persist"
)

const oldEndpoints = `{"Version": 1, "Endpoints": {
	"we_1": {"ID": "we_1", "Nth": 1, "URL": "https://purser.example/webhooks/stripe/con_1", "Types": ["*"]},
	"we_2": {"ID": "we_2", "Nth": 2, "URL": "https://elsewhere.example/hook", "Types": ["*"]}
}, "Queue": [{"ID": "d1", "Event": "evt_1", "Endpoint": "we_1"}, {"ID": "d2", "Event": "evt_1", "Endpoint": "we_2"}]}`

func TestEndpointsOfAnOldDocumentThatLieElsewhereAreOtherPrograms(t *testing.T) {
	t.Parallel()
	a, err := OpenStored(persist.Session{Legacy: []byte(oldEndpoints)}, Wanted(), BaseURLs{Webhooks: "https://purser.example/webhooks/"})
	if err != nil {
		t.Fatal(err)
	}
	if a.Waiting() != 2 || a.WaitingInside() != 1 || !a.Deliveries.Get("d2").Outside {
		t.Errorf("%d of %d deliveries are for the application itself", a.WaitingInside(), a.Waiting())
	}
	if _, err := a.DeleteEndpoint("we_2"); err != nil {
		t.Error(err)
	}
	if _, err := a.DeleteEndpoint("we_1"); err == nil {
		t.Error("the application's own endpoint was deleted")
	}
}

func TestOnlyEndpointsOfOtherProgramsAreCounted(t *testing.T) {
	t.Parallel()
	a, err := Open(nil, BaseURLs{})
	if err != nil {
		t.Fatal(err)
	}
	env := Env{Random: rand.New(rand.NewPCG(1, 1))}
	create := func(outside bool) error {
		_, err := a.CreateEndpoint(env, NewEndpoint{URL: "http://localhost/hook", Types: []string{"*"}, Outside: outside})
		return err
	}
	for i := range maxEndpoints {
		if err := create(true); err != nil {
			t.Fatalf("endpoint %d: %v", i, err)
		}
	}
	if err := create(true); err == nil {
		t.Error("one more than the limit was created")
	}
	if err := create(false); err != nil {
		t.Errorf("the application's own endpoint: %v", err)
	}
}
