package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"purser/store/internal/ledger"
	"purser/store/internal/pg"
	"purser/store/internal/wire"
)

// loadPacked reads the events among the packed ones that have the requests' event ids. It
// comes after usage_events was read: an event that was packed between is found here.
func loadPacked(ctx context.Context, conn *pgx.Conn, batches []*appBatch) error {
	pipe := wire.NewPipe(ctx, conn)
	for _, b := range batches {
		packed := wire.UUIDColumn
		for event := range uniqueValues(b.requests, func(r *request) string { return r.EventID }) {
			if id, may := pg.MayBePacked(event, b.packedBefore); may && b.events[event] == nil {
				packed.ID(id)
			}
		}
		if packed.Count > 0 {
			pipe.Send(ledger.ReadPacked, b.scanEvent, b.scope.AppID[:], packed.Encode(nil))
		}
	}
	return pipe.Run()
}

// mayRepeatPacked reports a request whose event may be packed, so that usage_events does not
// refuse a second one.
func mayRepeatPacked(r *request, before int64) bool {
	_, may := pg.MayBePacked(r.EventID, before)
	return may
}
