package store_test

import (
	"strings"
	"testing"

	"purser/ids"
	"purser/metering"
	"purser/store"
	"purser/store/reports"
	"purser/store/storetest"
)

// TestListsAreFilteredByCustomerAndPlan reads filtered lists in pages of two.
func TestListsAreFilteredByCustomerAndPlan(t *testing.T) {
	t.Parallel()
	s := newKiosk(t, storetest.Open(t))
	s.newCredit(t, "coins")
	s.newFeature(t, featureOf("images", "tokens"))
	read := s.Reports()
	const hour, ann = int64(3_600_000), "Ann@example.com"
	for i, d := range []store.Deposit{
		depositOf(ann, "tokens", 1_000_000, "filter first"), depositOf("ben", "tokens", 1_000_000, "filter second"), depositOf(ann, "coins", 30, "filter third"),
		depositOf(ann, "tokens", 40, "filter fourth"), depositOf(ann, "tokens", 50, "filter fifth"),
	} {
		d.CreatedAt = moment + int64(i)*hour
		s.deposit(t, d)
	}

	t.Run("deposits of a customer", func(t *testing.T) {
		for _, asked := range []struct {
			reports.DepositQuery
			want string
		}{
			{reports.DepositQuery{Identity: ann}, "fifth fourth third first"},
			{reports.DepositQuery{Identity: ann, Oldest: true}, "first third fourth fifth"},
			{reports.DepositQuery{Identity: ann, CreditKey: "tokens"}, "fifth fourth first"},
			{reports.DepositQuery{Identity: ann, CreditKey: "coins", Kind: metering.EntryDeposit}, "third"},
			{reports.DepositQuery{Identity: ann, From: moment + hour, To: moment + 4*hour}, "fourth third"},
			{reports.DepositQuery{Identity: "BEN"}, "second"},
			{reports.DepositQuery{Identity: "ben", Kind: metering.EntryTopUp}, ""},
			{reports.DepositQuery{Identity: "unknown"}, ""},
		} {
			q := asked.DepositQuery
			got := pagesOf(t, func(p store.Page) ([]reports.DepositFound, bool, error) {
				q.Page = p
				return read.FindDeposits(t.Context(), q)
			}, func(d reports.DepositFound) ids.ID { return d.ID }, func(d reports.DepositFound) string {
				return strings.TrimPrefix(*d.IdempotencyKey, "filter ")
			})
			if got != asked.want {
				t.Errorf("%+v finds %q, not %q", asked.DepositQuery, got, asked.want)
			}
		}
	})

	t.Run("subscriptions of a plan and of a customer", func(t *testing.T) {
		owner, plan, other := connect(t, storetest.URL(t)), ids.New(), ids.New()
		for _, made := range []struct {
			identity string
			status   metering.SubscriptionStatus
			plan     ids.ID
		}{
			{"ben", metering.StatusCanceled, plan}, {ann, metering.StatusCanceled, other}, {"ben", metering.StatusCanceled, other},
			{ann, metering.StatusPastDue, plan}, {"ben", metering.StatusActive, plan},
		} {
			id := ids.New()
			noError(t, s.PutSubscription(t.Context(), made.identity, metering.Subscription{ID: id, Status: made.status, Period: metering.MonthOf(moment)}))
			exec(t, owner, `UPDATE subscriptions SET plan_id = $2 WHERE id = $1`, id, made.plan)
		}
		for _, asked := range []struct {
			reports.SubscriptionQuery
			want string
		}{
			{reports.SubscriptionQuery{PlanID: plan}, "ben:active ann:past_due ben:canceled"},
			{reports.SubscriptionQuery{PlanID: plan, Oldest: true}, "ben:canceled ann:past_due ben:active"},
			{reports.SubscriptionQuery{PlanID: plan, Status: metering.StatusCanceled}, "ben:canceled"},
			{reports.SubscriptionQuery{PlanID: plan, OnHold: true}, "ann:past_due"},
			{reports.SubscriptionQuery{Identity: "Ben"}, "ben:active ben:canceled ben:canceled"},
			{reports.SubscriptionQuery{Identity: "ben", PlanID: other, Oldest: true}, "ben:canceled"},
			{reports.SubscriptionQuery{Identity: ann, OnHold: true}, "ann:past_due"},
			{reports.SubscriptionQuery{Identity: "unknown"}, ""},
			{reports.SubscriptionQuery{PlanID: ids.New()}, ""},
		} {
			q := asked.SubscriptionQuery
			got := pagesOf(t, func(p store.Page) ([]reports.SubscriptionFound, bool, error) {
				q.Page = p
				return read.FindSubscriptions(t.Context(), q)
			}, func(f reports.SubscriptionFound) ids.ID { return f.ID }, func(f reports.SubscriptionFound) string {
				return strings.ToLower(strings.TrimSuffix(f.Identity, "@example.com")) + ":" + string(f.Status)
			})
			if got != asked.want {
				t.Errorf("%+v finds %q, not %q", asked.SubscriptionQuery, got, asked.want)
			}
		}
		counts, err := read.SubscribersOf(t.Context(), []ids.ID{plan, other, ids.New()})
		noError(t, err)
		if counts[plan] != (reports.Subscribers{Count: 2}) || counts[other] != (reports.Subscribers{}) {
			t.Errorf("the subscribers are %+v", counts)
		}
	})

	t.Run("events of a customer", func(t *testing.T) {
		for i, feature := range []string{"messages", "images", "messages", "messages"} {
			s.now = moment + int64(i)*hour
			use := s.use(ann, int64(i+1))
			use.FeatureKey = feature
			_, err := s.usage.Track(use)
			noError(t, err)
		}
		s.track(t, "ben", 9)
		for _, asked := range []struct {
			reports.EventQuery
			want string
		}{
			{reports.EventQuery{Identity: ann}, "4321"},
			{reports.EventQuery{Identity: strings.ToLower(ann)}, "4321"},
			{reports.EventQuery{Identity: ann, FeatureKey: "messages"}, "431"},
			{reports.EventQuery{Identity: ann, From: moment + hour, To: moment + 3*hour}, "32"},
			{reports.EventQuery{Identity: "Ben"}, "9"},
			{reports.EventQuery{Identity: "unknown"}, ""},
		} {
			q, got := asked.EventQuery, ""
			q.Limit = 2
			for {
				list, next, err := read.EventsOfCustomer(t.Context(), q)
				noError(t, err)
				for _, e := range list {
					got += string(rune('0' + e.Quantity))
				}
				if q.BeforeSeq = next; next == 0 {
					break
				}
			}
			if got != asked.want {
				t.Errorf("%+v finds %q, not %q", asked.EventQuery, got, asked.want)
			}
		}
	})
}
