package api

import (
	"encoding/binary"
	"slices"
	"strings"

	"purser/ids"
	"purser/metering/rollup"
	"purser/store/rollups"
)

const (
	// Of a grouping by identity: the most buckets, how many customers one read has, and
	// how many reads a page makes before it is returned with fewer rows.
	maxIdentityBuckets = 31
	customersPerRead   = 100
	maxCustomerReads   = 10
)

type usageRowReply struct {
	Start              int64      `json:"start"`
	End                int64      `json:"end"`
	Group              usageGroup `json:"group"`
	CreditKey          string     `json:"creditKey"`
	Events             int64      `json:"events"`
	DeduplicatedEvents int64      `json:"deduplicatedEvents"`
	Quantity           *string    `json:"quantity"`
	IncludedQuantity   *string    `json:"includedQuantity"`
	ChargedNanocredits string     `json:"chargedNanocredits"`
}

type usageGroup struct {
	Feature  string `json:"feature,omitzero"`
	Identity string `json:"identity,omitzero"`
	KeyID    string `json:"keyId,omitzero"`
	EntityID string `json:"entityId,omitzero"`

	Properties map[string]string `json:"properties,omitzero"`
}

type usagePage struct {
	Data         []usageRowReply `json:"data"`
	SettledUntil *int64          `json:"settledUntil"`
	Cursor       *string         `json:"cursor"`
}

// getUsage pages by the last row of a page: its customer, bucket and group.
func (s *Server) getUsage(c *call) (reply, error) {
	groups := strings.Split(c.query.Text("groupBy"), ",")
	byIdentity := slices.Contains(groups, "identity")
	q := rollups.Query{
		FeatureKey: c.query.Text("feature"), Identity: c.query.Text("identity"),
		ByFeature: slices.Contains(groups, "feature"), ByKey: slices.Contains(groups, "key"),
	}
	if last := rollup.Dimension(groups[len(groups)-1]); last == rollup.Entity || last.PropertyName() != "" {
		q.Dimension = last
	}
	if q.Identity != "" && (byIdentity || q.ByKey || q.Dimension != "") {
		return reply{}, invalid("identity can't be combined with a groupBy of identity, key, entity or property.")
	}
	zone, err := rollup.Zone(c.query.Text("timezone"))
	if err != nil {
		return reply{}, err
	}
	if q.Buckets, err = rollup.NewBuckets(c.query.Int("from"), c.query.Int("to"), rollup.Unit(c.query.Text("bucket")), zone); err != nil {
		return reply{}, err
	}
	if byIdentity && len(q.Buckets.Starts) > maxIdentityBuckets {
		return reply{}, invalid("A range by identity has at most 31 buckets. Choose a shorter range or a larger bucket.")
	}
	if q.Dimension != "" {
		if err := q.Buckets.ForDimension(); err != nil {
			return reply{}, err
		}
	}
	filter := c.filter("from", "to", "bucket", "groupBy", "identity", "feature", "timezone")
	after := make([]byte, usagePosition)
	if c.query.Has("cursor") {
		if after, err = s.cursors.open(c, filter, c.query.Text("cursor"), usagePosition); err != nil {
			return reply{}, err
		}
	}
	read := s.usageOfAll
	if byIdentity {
		read = s.usageByIdentity
	}
	page, next, err := read(c, q, rowAt(after), int(c.query.Int("limit")))
	if err != nil {
		return reply{}, err
	}
	s.store.Stats().MarkUsed(c.scope) // settledUntil goes on while a client waits for it
	shown := usagePage{Data: showAll(page.Rows, func(r rollups.Row) usageRowReply { return showUsage(q, page, r) })}
	if page.Until > 0 {
		shown.SettledUntil = &page.Until
	}
	if next != nil {
		shown.Cursor = s.cursors.seal(c, filter, next)
	}
	return okOr(shown, nil)
}

// usageOfAll reads one page, of all customers together, of one, or of the values of a
// dimension.
func (s *Server) usageOfAll(c *call, q rollups.Query, after rollups.Row, limit int) (rollups.Usage, []byte, error) {
	app := s.store.Rollups(c.scope)
	read := app.Usage
	if q.Dimension != "" {
		read = app.DimensionUsage
	}
	page, err := read(c.ctx, q, after, limit+1)
	return cutUsage(page, limit, err)
}

// usageByIdentity reads customer by customer until the page is full. A customer that was
// active in the month, but not in the range, has no row.
func (s *Server) usageByIdentity(c *call, q rollups.Query, after rollups.Row, limit int) (all rollups.Usage, next []byte, err error) {
	for range maxCustomerReads {
		read, more, err := s.store.Rollups(c.scope).WalletUsage(c.ctx, q, after, customersPerRead, limit+1-len(all.Rows))
		if err != nil {
			return all, nil, err
		}
		read.Rows = append(all.Rows, read.Rows...)
		read.Join(all)
		if all = read; len(all.Rows) > limit || more.IsZero() {
			return cutUsage(all, limit, nil)
		}
		after = rollups.Row{WalletID: more}
	}
	return all, positionOfUsage(after), nil
}

// usagePosition is the size of a position: a customer, a bucket, and a feature, a credit
// and a key or the hash of a value.
const usagePosition = 16 + 8 + 3*16

// positionOfUsage is the place of a row in the order of rows.
func positionOfUsage(r rollups.Row) []byte {
	position := append(make([]byte, 0, usagePosition), r.WalletID[:]...)
	position = binary.BigEndian.AppendUint64(position, uint64(r.Start))
	last := r.KeyID
	if last.IsZero() {
		last = r.ValueHash
	}
	return slices.Concat(position, r.FeatureID[:], r.CreditID[:], last[:])
}

// rowAt is the row at a position, as far as it says its place.
func rowAt(position []byte) rollups.Row {
	last := ids.ID(position[56:])
	return rollups.Row{
		WalletID: ids.ID(position[:16]), Start: int64(binary.BigEndian.Uint64(position[16:])),
		FeatureID: ids.ID(position[24:40]), CreditID: ids.ID(position[40:56]), KeyID: last, ValueHash: last,
	}
}

// cutUsage leaves a page of rows, and says where the next one begins.
func cutUsage(page rollups.Usage, limit int, err error) (rollups.Usage, []byte, error) {
	if err != nil || len(page.Rows) <= limit {
		return page, nil, err
	}
	page.Rows = page.Rows[:limit]
	return page, positionOfUsage(page.Rows[limit-1]), nil
}

func showUsage(q rollups.Query, page rollups.Usage, r rollups.Row) usageRowReply {
	shown := usageRowReply{
		Start: r.Start, End: q.Buckets.EndOf(r.Start), CreditKey: page.Credits[r.CreditID].Key, Events: r.Events, DeduplicatedEvents: r.Deduplicated,
		ChargedNanocredits: r.Charged.String(), Group: usageGroup{Feature: page.Features[r.FeatureID].Key, Identity: page.Identities[r.WalletID]},
	}
	if !r.KeyID.IsZero() {
		shown.Group.KeyID = r.KeyID.Format(ids.APIKey)
	}
	switch name := q.Dimension.PropertyName(); {
	case name != "":
		shown.Group.Properties = map[string]string{name: r.Value}
	case q.Dimension == rollup.Entity:
		shown.Group.EntityID = r.Value
	}
	if q.ByFeature || q.FeatureKey != "" {
		quantity, included := r.Quantity.String(), r.Included.String()
		shown.Quantity, shown.IncludedQuantity = &quantity, &included
	}
	return shown
}
