package notify

import (
	"math/rand/v2"
	"slices"
	"testing"

	"purser/ids"
)

// Batches of any size number each notification once, and each endpoint's deliveries are
// one chain over exactly the notifications that it wants.
func TestSequenceLinksWhatEachEndpointWants(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		subscribers := make([]Subscriber, random.IntN(4))
		for i := range subscribers {
			subscribers[i].EndpointID = ids.New()
			for range random.IntN(3) {
				subscribers[i].Types = append(subscribers[i].Types, types[random.IntN(4)])
			}
		}
		chains := make(map[ids.ID][]Linked)
		var all []Unnumbered
		last := int64(0)
		for range random.IntN(6) {
			batch := make([]Unnumbered, random.IntN(20))
			for i := range batch {
				batch[i] = Unnumbered{ids.New(), types[random.IntN(4)]}
			}
			links, end := Sequence(last, batch, subscribers)
			if end != last+int64(len(batch)) {
				t.Fatalf("seed %d: %d notifications after %d end at %d", seed, len(batch), last, end)
			}
			last = end
			all = append(all, batch...)
			for _, l := range links {
				chains[l.EndpointID] = append(chains[l.EndpointID], l)
			}
		}
		for _, s := range subscribers {
			var previous int64
			chain := chains[s.EndpointID]
			for i, n := range all {
				if !s.Wants(n.Type) {
					continue
				}
				if len(chain) == 0 || chain[0] != (Linked{s.EndpointID, n.ID, int64(i + 1), previous}) {
					t.Fatalf("seed %d: notification %d is linked as %+v", seed, i+1, chain)
				}
				previous, chain = chain[0].Seq, chain[1:]
			}
			if len(chain) > 0 || s.LastSeq != previous {
				t.Fatalf("seed %d: the endpoint is at %d with %d deliveries too many", seed, s.LastSeq, len(chain))
			}
		}
	}
}

func TestTypesAreDifferent(t *testing.T) {
	t.Parallel()
	list := Types()
	slices.Sort(list)
	if len(slices.Compact(list)) != len(types) {
		t.Error("a type is listed twice")
	}
	if Type("deposit").Known() || !DepositCreated.Known() {
		t.Error("Known does not go by the list")
	}
}
