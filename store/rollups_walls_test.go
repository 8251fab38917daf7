package store_test

import (
	"context"

	"purser/fault"
	"purser/ids"
	"purser/metering/rollup"
	"purser/store/rollups"
)

// usageQuery asks for the day of the fixture's events.
func (h fixture) usageQuery(ask func(*rollups.Query)) rollups.Query {
	zone, err := rollup.Zone("")
	if err != nil {
		panic(err)
	}
	buckets, err := rollup.NewBuckets(moment, moment+1, rollup.ByDay, zone)
	if err != nil {
		panic(err)
	}
	q := rollups.Query{Buckets: buckets, ByFeature: true}
	ask(&q)
	return q
}

var rollupCalls = []call[rollups.App]{
	{"RollUp", "", "", "", "", func(ctx context.Context, a rollups.App, _ fixture) (any, error) {
		_, err := a.RollUp(ctx, rollups.Alone)
		return nil, err
	}},
	{"Usage", "all", "", "", "", func(ctx context.Context, a rollups.App, h fixture) (any, error) {
		found, err := a.Usage(ctx, h.usageQuery(func(q *rollups.Query) { q.ByKey = true }), rollups.Row{}, 100)
		return found.Rows, err
	}},
	{"Usage", "its identity", fault.WalletNotFound, "", "", func(ctx context.Context, a rollups.App, h fixture) (any, error) {
		found, err := a.Usage(ctx, h.usageQuery(func(q *rollups.Query) { q.Identity = h.deposit.Identity }), rollups.Row{}, 100)
		return found.Rows, err
	}},
	{"Usage", "its feature", fault.FeatureNotFound, "", "", func(ctx context.Context, a rollups.App, h fixture) (any, error) {
		found, err := a.Usage(ctx, h.usageQuery(func(q *rollups.Query) { q.FeatureKey = h.feature.Key }), rollups.Row{}, 100)
		return found.Rows, err
	}},
	{"WalletUsage", "", "", "", "", func(ctx context.Context, a rollups.App, h fixture) (any, error) {
		found, _, err := a.WalletUsage(ctx, h.usageQuery(func(*rollups.Query) {}), rollups.Row{}, 100, 100)
		return found.Rows, err
	}},
	{"DimensionUsage", "", "", "", "", func(ctx context.Context, a rollups.App, h fixture) (any, error) {
		found, err := a.DimensionUsage(ctx, h.usageQuery(func(q *rollups.Query) { q.Dimension = rollup.Entity }), rollups.Row{}, 100)
		return found.Rows, err
	}},
	{"LargestValues", "", "", "", "", func(ctx context.Context, a rollups.App, h fixture) (any, error) {
		found, err := a.LargestValues(ctx, h.usageQuery(func(q *rollups.Query) { q.Dimension = rollup.Entity }), 100)
		return found.Rows, err
	}},
	{"Dimensions", "", "", "", "", func(ctx context.Context, a rollups.App, _ fixture) (any, error) {
		return a.Dimensions(ctx, 100)
	}},
	{"RecordLiability", "", "", "", "", func(ctx context.Context, a rollups.App, _ fixture) (any, error) {
		return nil, a.RecordLiability(ctx)
	}},
	{"Finance", "", "", "", "", func(ctx context.Context, a rollups.App, _ fixture) (any, error) {
		return a.Finance(ctx, 0, moment+1, moment)
	}},
	{"Top", "", "", "", "", func(ctx context.Context, a rollups.App, _ fixture) (any, error) {
		return a.Top(ctx, moment, 10)
	}},
	{"LargestWallets", "", "", "", "", func(ctx context.Context, a rollups.App, h fixture) (any, error) {
		list, _, err := a.LargestWallets(ctx, h.usageQuery(func(*rollups.Query) {}), rollups.Events, ids.ID{}, 10)
		return list, err
	}},
}
