package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net/http"
	"regexp"
	"testing"
	"time"
)

type usageBody struct{ ID, Identity, Feature, EntityID string }

// readBack lets the standard library say what a server would understand.
func readBack(t *testing.T, text []byte) (*http.Request, usageBody) {
	t.Helper()
	from := bufio.NewReader(bytes.NewReader(text))
	request, err := http.ReadRequest(from)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(request.Body)
	if err != nil {
		t.Fatal(err)
	}
	if from.Buffered() > 0 {
		t.Fatalf("the request goes on after its end, by %d bytes", from.Buffered())
	}
	var use usageBody
	if err := json.Unmarshal(body, &use); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return request, use
}

var uuidv7 = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)

func only(wallet int) func() int { return func() int { return wallet } }

func TestRequests(t *testing.T) {
	t.Parallel()
	random := rand.NewPCG(1, 2)
	moment := time.UnixMilli(1_700_000_000_000)

	t.Run("a track names its wallet and has a UUIDv7 of the moment", func(t *testing.T) {
		track := newTrack("127.0.0.1:80", "secret", variant{})
		request, use := readBack(t, track.fill(only(1234567), moment, random))
		if request.URL.Path != "/v1/events" || request.Header.Get("Authorization") != "Bearer secret" {
			t.Errorf("it asks %s with %v", request.URL, request.Header)
		}
		if use.Identity != "wallet-1234567" || use.Feature != featureKey || use.EntityID != "" || !uuidv7.MatchString(use.ID) {
			t.Errorf("it says %+v", use)
		}
	})
	t.Run("a track of each variant says what the variant says", func(t *testing.T) {
		for v, want := range map[variant]usageBody{
			{entity: true}:                {Feature: featureKey, EntityID: "order-0000042"},
			{limited: true}:               {Feature: limitedKey},
			{entity: true, limited: true}: {Feature: limitedKey, EntityID: "order-0000042"},
		} {
			_, use := readBack(t, newTrack("127.0.0.1:80", "secret", v).fill(only(42), moment, random))
			if use.Identity != identityOf(42) || use.Feature != want.Feature || use.EntityID != want.EntityID || !uuidv7.MatchString(use.ID) {
				t.Errorf("%+v says %+v", v, use)
			}
		}
	})
	t.Run("a later track has a greater id, and nothing of the last wallet", func(t *testing.T) {
		track := newTrack("127.0.0.1:80", "secret", variant{})
		_, first := readBack(t, track.fill(only(9999999), moment, random))
		_, second := readBack(t, track.fill(only(3), moment.Add(time.Millisecond), random))
		if second.Identity != "wallet-0000003" || second.ID <= first.ID {
			t.Errorf("after %+v it says %+v", first, second)
		}
	})
	t.Run("a thousand ids of one moment are different", func(t *testing.T) {
		seen := map[string]bool{}
		for range 1000 {
			id := make([]byte, eventIDLength)
			writeEventID(id, moment, random)
			seen[string(id)] = true
		}
		if len(seen) != 1000 {
			t.Errorf("only %d are", len(seen))
		}
	})
	t.Run("a batch names a wallet and an id of its own for each event", func(t *testing.T) {
		next := 0
		batch := newBatch("127.0.0.1:80", "secret", 20)
		text := batch.fill(func() int { next++; return next }, moment, random)
		request, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(text)))
		if err != nil {
			t.Fatal(err)
		}
		var sent struct{ Events []usageBody }
		if err := json.NewDecoder(request.Body).Decode(&sent); err != nil || len(sent.Events) != 20 {
			t.Fatalf("it sends %+v, %v", sent, err)
		}
		seen, entities, limited := map[string]bool{}, 0, 0
		for i, e := range sent.Events {
			seen[e.ID] = true
			switch {
			case e.EntityID != "":
				entities++
			case e.Feature == limitedKey:
				limited++
			}
			if e.Identity != identityOf(i+1) || !uuidv7.MatchString(e.ID) {
				t.Errorf("event %d says %+v", i, e)
			}
		}
		if request.URL.Path != "/v1/events/batch" || len(seen) != 20 || entities != 2 || limited != 2 {
			t.Errorf("it asks %s with %d ids, %d entities and %d uses of the limited feature", request.URL, len(seen), entities, limited)
		}
	})
	t.Run("a check has no id", func(t *testing.T) {
		check := newCheck("127.0.0.1:80", "secret")
		request, use := readBack(t, check.fill(only(42), moment, random))
		if request.URL.Path != "/v1/check" || use != (usageBody{Identity: "wallet-0000042", Feature: featureKey}) {
			t.Errorf("it asks %s for %+v", request.URL, use)
		}
	})
}

func TestPickers(t *testing.T) {
	t.Parallel()
	const wallets = 1000
	count := func(p picker) map[int]int {
		next, seen := p(rand.New(rand.NewPCG(3, 4))), map[int]int{}
		for range 100 * wallets {
			seen[next()]++
		}
		return seen
	}
	t.Run("evenly reaches every wallet about as often", func(t *testing.T) {
		t.Parallel()
		seen := count(evenly(wallets))
		for wallet := range wallets {
			if n := seen[wallet]; n < 50 || n > 150 {
				t.Errorf("wallet %d was picked %d times of 100", wallet, n)
			}
		}
	})
	t.Run("by rank, the first is picked far more often than the tenth", func(t *testing.T) {
		t.Parallel()
		seen := count(byRank(wallets))
		first, tenth := seen[0], seen[9*scatter%wallets]
		if first < 5*tenth || tenth == 0 {
			t.Errorf("the first was picked %d times, the tenth %d times", first, tenth)
		}
		for wallet := range seen {
			if wallet < 0 || wallet >= wallets {
				t.Fatalf("there is no wallet %d", wallet)
			}
		}
	})
}
