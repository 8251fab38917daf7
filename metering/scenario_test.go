package metering

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"purser/ids"
)

// TestScenarios runs testdata/scenarios; its README has the format.
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/scenarios/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			runScenarios(t, file, string(text))
		})
	}
}

func runScenarios(t *testing.T, file, text string) {
	blocks := strings.Split("\n"+text, "\nscenario ")
	at := strings.Count(blocks[0], "\n") + 1
	for _, block := range blocks[1:] {
		lines := strings.Split(block, "\n")
		start := at
		at += len(lines)
		t.Run(lines[0], func(t *testing.T) {
			t.Parallel()
			s := newStory(t)
			for i, line := range lines[1:] {
				line, _, _ = strings.Cut(line, "#")
				if words := strings.Fields(line); len(words) > 0 {
					s.where = file + ":" + strconv.Itoa(start+1+i)
					s.step(words)
				}
			}
			if s.claims == 0 {
				t.Error("the scenario claims nothing")
			}
		})
	}
}

// story is a scenario under way.
type story struct {
	t        *testing.T
	where    string
	claims   int
	now      int64
	features map[string]*Feature
	credits  map[string]ids.ID
	wallets  map[string]*State
	events   map[string]*Event
	names    map[ids.ID]string // of transactions: their event ids

	state    *State // of the last use or check
	decision Decision
	feature  *Feature
	checked  bool
}

func newStory(t *testing.T) *story {
	return &story{
		t:        t,
		now:      time.Date(2024, 2, 10, 12, 0, 0, 0, time.UTC).UnixMilli(),
		features: map[string]*Feature{},
		credits:  map[string]ids.ID{},
		wallets:  map[string]*State{},
		events:   map[string]*Event{},
		names:    map[ids.ID]string{},
	}
}

func (s *story) step(words []string) {
	s.t.Helper()
	args, options := s.split(words[1:])
	switch {
	case words[0] == "given" && len(args) > 0:
		s.given(args[0], args[1:], options)
	case words[0] == "when" && len(args) == 2 && (args[0] == "use" || args[0] == "check"):
		s.when(args[0] == "check", args[1], options)
	case words[0] == "then" && len(args) == 1:
		s.then(args[0], options)
	default:
		s.fatalf("cannot read %q", words)
	}
	for name := range options {
		s.fatalf("%q means nothing here", name)
	}
}

func (s *story) split(words []string) (args []string, options map[string]string) {
	options = map[string]string{}
	for _, word := range words {
		if name, value, found := strings.Cut(word, "="); found {
			options[name] = value
		} else {
			args = append(args, word)
		}
	}
	return args, options
}

func (s *story) given(what string, args []string, options map[string]string) {
	s.t.Helper()
	wants := map[string]int{"now": 1, "feature": 1, "deposit": 2, "takeback": 2, "billing": 2, "limit": 4, "multiplier": 2}
	if n, fixed := wants[what]; fixed && n != len(args) {
		s.fatalf("%q takes %d words", what, n)
	}
	state := s.wallet(options)
	switch what {
	case "now":
		s.now = s.moment(args[0])
	case "feature":
		s.giveFeature(args[0], options)
	case "deposit":
		s.move(state, args[1], func(b Balance) (Balance, error) { return b.Receive(s.amount(args[0])) })
	case "takeback":
		s.move(state, args[1], func(b Balance) (Balance, error) { return takeBackAll(b, s.amount(args[0])) })
	case "billing":
		wallet, err := state.Wallet.SetBillingPeriod(BillingPeriod{Interval(args[0]), s.moment(args[1])})
		if err != nil {
			s.fatalf("%v", err)
		}
		state.Wallet = wallet
	case "subscription":
		s.giveSubscription(state, args)
	case "limit":
		terms := s.terms(state)
		terms.Limits = append([]Limit{{
			FeatureID: s.known(args[0]).ID, FeatureKey: args[0], Limit: s.number(args[1]),
			Period: LimitPeriod(args[2]), Overage: Overage(args[3]),
		}}, terms.Limits...)
	case "multiplier":
		terms := s.terms(state)
		terms.Multipliers = append([]Multiplier{{
			FeatureID: s.known(args[0]).ID, FeatureKey: args[0], BasisPoints: s.number(args[1]),
		}}, terms.Multipliers...)
	default:
		s.fatalf("cannot give %q", what)
	}
}

func (s *story) giveFeature(key string, options map[string]string) {
	s.t.Helper()
	f, exists := s.features[key]
	if !exists {
		f = &Feature{
			ID: ids.New(), Key: key, CreditID: s.credit("gold"), CreditKey: "gold", Cost: 1000,
			QuantityPerUnit: 1, PricingMode: Fixed, Deduplication: DeduplicateNone, Revision: 1,
		}
		s.features[key] = f
	}
	var patch FeaturePatch
	for name := range options {
		value := take(options, name)
		switch name {
		case "cost":
			patch.Cost = to(s.amount(value))
		case "per":
			patch.QuantityPerUnit = to(s.number(value))
		case "credit":
			patch.CreditID, patch.CreditKey = to(s.credit(value)), &value
		case "mode":
			patch.PricingMode = to(PricingMode(value))
		case "dedup":
			patch.Deduplication = to(Deduplication(value))
		default:
			s.fatalf("a feature has no %q", name)
		}
	}
	next, err := f.Patch(patch)
	if err != nil {
		s.fatalf("%v", err)
	}
	if !exists {
		next.Revision = 1
	}
	*f = next
}

func (s *story) giveSubscription(state *State, args []string) {
	s.t.Helper()
	if len(args) == 1 && args[0] == "none" {
		state.Subscription = nil
		return
	}
	if len(args) != 3 {
		s.fatalf("a subscription takes a status, a start and an end")
	}
	if state.Subscription == nil {
		state.Subscription = &Subscription{ID: ids.New()}
	}
	state.Subscription.Status = SubscriptionStatus(args[0])
	state.Subscription.Period = Period{s.moment(args[1]), s.moment(args[2])}
}

func (s *story) terms(state *State) *Terms {
	s.t.Helper()
	if state.Subscription == nil {
		s.fatalf("there is no subscription to have terms")
	}
	return &state.Subscription.Terms
}

func (s *story) move(state *State, credit string, change func(Balance) (Balance, error)) {
	s.t.Helper()
	id := s.credit(credit)
	after, err := change(state.Wallet.Balance(id))
	if err != nil {
		s.fatalf("%v", err)
	}
	for i := range state.Wallet.Balances {
		if state.Wallet.Balances[i].CreditID == id {
			state.Wallet.Balances[i] = after
			return
		}
	}
	after.CreditKey = credit
	state.Wallet.Balances = append(state.Wallet.Balances, after)
}

func (s *story) when(check bool, feature string, options map[string]string) {
	s.t.Helper()
	s.state, s.feature, s.checked = s.wallet(options), s.known(feature), check
	s.state.Now = s.now
	usage := Usage{Feature: s.feature, Quantity: 1, EntityID: take(options, "entity")}
	if !check {
		usage.TransactionID = ids.New()
		usage.EventID = "#" + strconv.Itoa(len(s.names))
		s.names[usage.TransactionID] = usage.EventID
	}
	for name := range options {
		value := take(options, name)
		switch name {
		case "id":
			usage.EventID = value
			s.names[usage.TransactionID] = value
		case "quantity":
			usage.Quantity = s.number(value)
		case "amount":
			usage.Amount = to(s.amount(value))
		case "at":
			usage.OccurredAt = to(s.moment(value))
		default:
			s.fatalf("a use has no %q", name)
		}
	}
	s.decision = Decide(s.state, usage)
	s.state.Apply(s.decision)
	if s.decision.New && s.decision.LocksDeduplication {
		s.feature.DeduplicationLocked = true
	}
}
