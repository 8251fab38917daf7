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
	// days is how long the demo lasts: past a month, so that plans have renewed.
	days = 36
	// atOnce is how many requests are under way at a time.
	atOnce = 12

	weekend = 0.3 // of a working day's uses

	dayMillis = int64(24 * time.Hour / time.Millisecond)
)

// hours are when usage is sent, by the application's clock, and lag how far back it
// then reaches.
var hours = []time.Duration{13 * time.Hour, 20 * time.Hour}

const lag = 7 * time.Hour

// What happens on some days beside the usual.
const (
	dayOfHold  = 4 // someone subscribes whose renewal will fail
	dayOfCard  = 12
	dayOfVisit = 15 // someone leaves a checkout open until it expires
	dayOfPrice = 18
)

// spend lives through a day.
func (t *tale) spend(ctx context.Context, day int) error {
	luck := rand.New(rand.NewPCG(48, uint64(day)))
	morning := metering.DayOf(t.now).Start + dayMillis
	for n, hour := range hours {
		if err := t.advance(ctx, morning+hour.Milliseconds()); err != nil {
			return err
		}
		if n == 0 {
			if err := t.begin(ctx, day); err != nil {
				return err
			}
		}
		if err := t.use(ctx, fmt.Sprintf("d%02d-%d", day, n), luck); err != nil {
			return err
		}
	}
	return nil
}

// begin is what happens before the uses of a day.
func (t *tale) begin(ctx context.Context, day int) (err error) {
	switch day {
	case dayOfHold:
		err = t.subscribe(ctx, OnHold, starter, cardPays)
	case dayOfCard:
		err = t.swapCard(ctx, OnHold, cardFailsLater)
	case dayOfVisit:
		_, err = t.checkout(ctx, Browsing, team)
	case dayOfPrice:
		err = t.raisePrices(ctx)
	}
	if err == nil && day > 0 && day%7 == 0 {
		err = t.deposit(ctx, day/7)
	}
	return err
}

// use sends what the customers have done in the last hours, as they would: some of
// it is refused, because somebody has run dry.
func (t *tale) use(ctx context.Context, batch string, luck *rand.Rand) error {
	share := 1 / float64(len(hours))
	if day := time.UnixMilli(t.now).UTC().Weekday(); day == time.Saturday || day == time.Sunday {
		share *= weekend
	}
	var sending errgroup.Group
	sending.SetLimit(atOnce)
	for _, c := range customers {
		for n := range int(c.pace*share + luck.Float64()) {
			u := c.usual(luck)
			u.id = fmt.Sprintf("%s-%s-%d", batch, c.identity, n)
			u.occurredAt = t.now - luck.Int64N(lag.Milliseconds())
			sending.Go(func() error {
				_, err := t.edge.call(ctx, http.MethodPost, "/v1/events", u.tracked(), nil, http.StatusCreated, http.StatusOK, http.StatusConflict)
				return err
			})
		}
	}
	return sending.Wait()
}

// usual is one of the things that the customer does all the time.
func (c customer) usual(luck *rand.Rand) use {
	u := use{identity: c.identity, feature: chat, quantity: 200 + luck.Int64N(6000)}
	switch dice := luck.IntN(100); {
	case c.plan == free && dice < 10:
		u.feature, u.quantity = image, 1
	case c.plan == free:
		u.quantity = 50 + luck.Int64N(1000)
	case dice < 68:
	case dice < 80:
		u.feature, u.quantity = image, 1+luck.Int64N(3)
	case dice < 89:
		u.feature, u.quantity = transcribe, 1+luck.Int64N(45)
	case dice < 96:
		u.feature, u.quantity, u.entity = export, 1, fmt.Sprintf("doc-%s-%d", c.identity, luck.IntN(6))
	default:
		u.feature, u.quantity, u.amount = agent, 1, fmt.Sprint(500_000_000+luck.Int64N(4_000_000_000))
	}
	return u
}
