package demo

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"purser/metering"
)

const (
	// days is the length of the demo: more than a month, so that plans have renewed.
	days = 36
	// concurrency is how many requests are in flight.
	concurrency = 12

	weekend = 0.3 // of a working day's usage

	dayMillis = int64(24 * time.Hour / time.Millisecond)
)

// hours are the times of day at which usage is sent, by the application's clock; lag is
// how far back it occurred.
var hours = []time.Duration{13 * time.Hour, 20 * time.Hour}

const lag = 7 * time.Hour

// The days with special operations.
const (
	dayOfHold              = 4 // a customer subscribes whose renewal will fail
	dayOfCard              = 12
	dayOfAbandonedCheckout = 15 // a customer leaves a checkout open until it expires
	dayOfPrice             = 18
)

func (s *story) runDay(ctx context.Context, day int) {
	random := rand.New(rand.NewPCG(48, uint64(day)))
	morning := metering.DayOf(s.now).Start + dayMillis
	for n, hour := range hours {
		s.advance(ctx, morning+hour.Milliseconds())
		if n == 0 {
			s.startDay(ctx, day)
		}
		s.do(func() error { return s.sendUsage(ctx, fmt.Sprintf("d%02d-%d", day, n), random) })
	}
}

// startDay runs the operations before the usage of a day.
func (s *story) startDay(ctx context.Context, day int) {
	switch day {
	case dayOfHold:
		s.subscribe(ctx, OnHold, starter, cardPays)
	case dayOfCard:
		s.swapCard(ctx, OnHold, cardFailsLater)
	case dayOfAbandonedCheckout:
		s.checkout(ctx, Browsing, team)
	case dayOfPrice:
		s.raisePrices(ctx)
	}
	if day > 0 && day%7 == 0 {
		s.deposit(ctx, day/7)
	}
}

// sendUsage sends the customers' usage of the last hours. Some of it is denied, because
// a customer's balance is used up.
func (s *story) sendUsage(ctx context.Context, batch string, random *rand.Rand) error {
	share := 1 / float64(len(hours))
	if day := time.UnixMilli(s.now).UTC().Weekday(); day == time.Saturday || day == time.Sunday {
		share *= weekend
	}
	var sending errgroup.Group
	sending.SetLimit(concurrency)
	for _, c := range customers {
		for n := range int(c.pace*share + random.Float64()) {
			u := c.randomUsage(random)
			u.id = fmt.Sprintf("%s-%s-%d", batch, c.identity, n)
			u.occurredAt = s.now - random.Int64N(lag.Milliseconds())
			sending.Go(func() error {
				return s.edge.call(ctx, http.MethodPost, "/v1/events", u.eventBody(), nil, http.StatusCreated, http.StatusOK, http.StatusConflict)
			})
		}
	}
	return sending.Wait()
}

// randomUsage is a typical usage event of the customer.
func (c customer) randomUsage(random *rand.Rand) usage {
	u := usage{identity: c.identity, feature: chat, quantity: 200 + random.Int64N(6000)}
	switch dice := random.IntN(100); {
	case c.plan == free && dice < 10:
		u.feature, u.quantity = image, 1
	case c.plan == free:
		u.quantity = 50 + random.Int64N(1000)
	case dice < 68:
	case dice < 80:
		u.feature, u.quantity = image, 1+random.Int64N(3)
	case dice < 89:
		u.feature, u.quantity = transcribe, 1+random.Int64N(45)
	case dice < 96:
		u.feature, u.quantity, u.entity = export, 1, fmt.Sprintf("doc-%s-%d", c.identity, random.IntN(6))
	default:
		u.feature, u.quantity, u.amount = agent, 1, fmt.Sprint(500_000_000+random.Int64N(4_000_000_000))
	}
	if u.feature == chat {
		u.properties = object{"model": []string{"small", "large", "large", "reasoning"}[u.quantity%4]}
	}
	return u
}
