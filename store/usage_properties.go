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
func (b *appBatch) writeProperties(p *wire.Pipe) {
	var columns []wire.Column // made for the first
	for i := range b.records {
		r := &b.records[i]
		if r.Properties == "" {
			continue
		}
		if columns == nil {
			columns = []wire.Column{wire.UUIDColumn, wire.Int8Column, wire.TextColumn}
		}
		columns[0].ID(r.WalletID)
		columns[1].Int8(r.seq)
		columns[2].Text(string(r.Properties))
	}
	if columns != nil {
		p.SendRows(insertProperties, insertProperties, columns, b.scope.AppID[:])
	}
}
