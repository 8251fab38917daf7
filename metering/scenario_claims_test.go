package metering

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"purser/ids"
)

func (s *story) then(verdict string, options map[string]string) {
	s.t.Helper()
	s.claims++
	d := &s.decision
	got := string(d.Verdict)
	if !d.Allowed() {
		got = string(d.Code)
	}
	s.expect("verdict", got, verdict)
	balance := s.state.Wallet.Balance(s.feature.CreditID)
	if s.checked {
		balance = d.Before
	}
	for name := range options {
		want := take(options, name)
		var got string
		switch name {
		case "amount":
			got = d.Event.Charge.Amount.String()
		case "balance":
			got = balance.Amount.String()
		case "debt":
			got = balance.Debt.String()
		case "from":
			got = s.names[d.Event.DeduplicatedFrom]
		case "first":
			got = s.names[d.Event.TransactionID]
		case "differs":
			got = map[bool]string{true: "yes", false: "no"}[d.Differs]
		case "limit":
			if got = "none"; d.Allowance.Limited() {
				got = strconv.FormatInt(d.Allowance.Limit, 10)
			}
		case "used":
			got = strconv.FormatInt(d.Allowance.Used, 10)
		case "remaining":
			got = strconv.FormatInt(d.Allowance.Remaining(), 10)
		case "billable":
			got = strconv.FormatInt(d.Event.Charge.Billable, 10)
		case "times":
			got = strconv.FormatInt(d.Event.Charge.BasisPoints, 10)
		case "revision":
			got = strconv.FormatInt(d.Event.Charge.FeatureRevision, 10)
		case "period":
			got, want = fmt.Sprint(d.Event.Period), fmt.Sprint(s.period(want))
		case "counts":
			got, want = fmt.Sprint(d.Allowance.Period), fmt.Sprint(s.period(want))
		default:
			s.fatalf("a decision has no %q", name)
		}
		s.expect(name, got, want)
	}
}

func (s *story) expect(what, got, want string) {
	s.t.Helper()
	if got != want {
		s.t.Errorf("%s: %s is %s, want %s", s.where, what, got, want)
	}
}

func (s *story) fatalf(format string, args ...any) {
	s.t.Helper()
	s.t.Fatalf("%s: %s", s.where, fmt.Sprintf(format, args...))
}

func (s *story) wallet(options map[string]string) *State {
	name := take(options, "wallet")
	if name == "" {
		name = "main"
	}
	if s.wallets[name] == nil {
		s.wallets[name] = &State{Wallet: Wallet{ID: ids.New()}, Events: s.events}
	}
	return s.wallets[name]
}

func (s *story) known(feature string) *Feature {
	s.t.Helper()
	if s.features[feature] == nil {
		s.fatalf("there is no feature %q", feature)
	}
	return s.features[feature]
}

func (s *story) credit(key string) ids.ID {
	if _, known := s.credits[key]; !known {
		s.credits[key] = ids.New()
	}
	return s.credits[key]
}

func (s *story) amount(text string) Amount {
	s.t.Helper()
	amount, ok := ParseAmount(text)
	if !ok {
		s.fatalf("%q is not an amount", text)
	}
	return amount
}

func (s *story) number(text string) int64 {
	s.t.Helper()
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		s.fatalf("%v", err)
	}
	return n
}

func (s *story) moment(text string) int64 {
	s.t.Helper()
	for _, layout := range []string{time.DateOnly, "2006-01-02T15:04:05.999"} {
		if at, err := time.Parse(layout, text); err == nil {
			return at.UnixMilli()
		}
	}
	return s.number(text)
}

func (s *story) period(text string) Period {
	s.t.Helper()
	if text == "none" {
		return Period{}
	}
	start, end, _ := strings.Cut(text, "..")
	return Period{s.moment(start), s.moment(end)}
}

// take reads an option and strikes it off, so that what is left over is an error.
func take(options map[string]string, name string) string {
	value := options[name]
	delete(options, name)
	return value
}
