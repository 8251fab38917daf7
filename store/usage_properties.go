package store

import (
	"purser/store/internal/pg"
	"purser/store/internal/wire"
)

var insertProperties = pg.Declare("insert properties", `
	INSERT INTO event_properties (app_id, org_id, wallet_id, seq, properties)
	SELECT s.app_id, s.org_id, t.wallet_id, t.seq, t.properties::jsonb
	FROM app_state s CROSS JOIN unnest($2::uuid[], $3::bigint[], $4::text[]) AS t (wallet_id, seq, properties)
	WHERE s.app_id = $1`)

// writeProperties inserts the properties of those events that have any, after the
// events.
func (b *appBatch) writeProperties(pipe *wire.Pipe) {
	wallet, seq, properties := wire.UUIDColumn, wire.Int8Column, wire.TextColumn
	for i := range b.records {
		r := &b.records[i]
		if r.Properties == "" {
			continue
		}
		wallet.ID(r.WalletID)
		seq.Int8(r.seq)
		properties.Text(string(r.Properties))
	}
	if wallet.Count > 0 {
		pipe.SendRows(insertProperties, insertProperties, []wire.Column{wallet, seq, properties}, b.scope.AppID[:])
	}
}
