package rollups

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"purser/ids"
	"purser/metering"
	"purser/metering/rollup"
	"purser/store/internal/pg"
)

var (
	selectPacks = pg.Declare("select packed values", `
		SELECT day, credit_id, packed FROM usage_value_days
		WHERE app_id = $1 AND name = $2 AND day >= $3 AND day < $4 AND feature_id = $5`)

	sumPacks = pg.Declare("sum packed values", `
		SELECT t.day, t.credit_id, t.events, t.deduplicated, t.quantity::text, t.included::text, t.charged_nanocredits::text
		FROM usage_value_days t
		WHERE t.app_id = $1 AND t.name = $2 AND t.day >= $3 AND t.day < $4 AND t.feature_id = $5`)

	sumValues = pg.Declare("sum usage by value and day", `
		SELECT t.day, t.credit_id, CASE WHEN $6::boolean THEN t.value ELSE '' END, `+sumColumns+`
		FROM usage_dimensions t
		WHERE t.app_id = $1 AND t.name = $2 AND t.day >= $3 AND t.day < $4 AND ($5::uuid IS NULL OR t.feature_id = $5)
		GROUP BY 1, 2, 3`)
)

// LargestValues reads the sums of the largest values of q.Dimension by events and by
// charges, at most this many of each, and those of all others as rollup.OtherValue. They
// are not by feature.
//
// Every value of the range counts, so all are read: those of final days packed.
func (a App) LargestValues(ctx context.Context, q Query, values int) (Usage, error) {
	return a.usage(ctx, q, func(ctx context.Context, tx *pg.Tx, feature *ids.ID, settled settled) ([]Row, error) {
		days := valueDays{packed: pg.OrZero(feature), all: feature, named: values > 0}
		if err := days.load(ctx, tx, q, min(max(settled.Values, q.Buckets.From()), q.Buckets.End)); err != nil {
			return nil, err
		}
		return days.rows(q.Buckets, values)
	})
}

// valueDays are the values of a range, by day and credit.
type valueDays struct {
	packed ids.ID  // the feature of packs
	all    *ids.ID // the same of other rows
	named  bool    // otherwise values have no names
	packs  []valuePack
	loose  []looseValue
}

type valuePack struct {
	day    int64
	credit ids.ID
	pack   []byte
}

type looseValue struct {
	day    int64
	credit ids.ID
	rollup.ValueSums
}

// load reads days that are packed, up to a time, and those that are not.
func (d *valueDays) load(ctx context.Context, tx *pg.Tx, q Query, packed int64) (err error) {
	args := []any{string(q.Dimension), q.Buckets.From(), packed, d.packed}
	if d.named {
		if d.packs, err = pg.Collect(ctx, tx, selectPacks, func(row pgx.CollectableRow) (p valuePack, err error) {
			return p, row.Scan(&p.day, &p.credit, &p.pack)
		}, args...); err != nil {
			return err
		}
	} else if d.loose, err = pg.Collect(ctx, tx, sumPacks, func(row pgx.CollectableRow) (v looseValue, err error) {
		var r sumRow
		err = row.Scan(&v.day, &v.credit, &r.events, &r.deduplicated, &r.quantity, &r.included, &r.charged)
		v.Sums = r.sums()
		return v, err
	}, args...); err != nil {
		return err
	}
	rest, err := pg.Collect(ctx, tx, sumValues, func(row pgx.CollectableRow) (v looseValue, err error) {
		var r sumRow
		err = row.Scan(&v.day, &v.credit, &v.Value, &r.events, &r.deduplicated, &r.quantity, &r.included, &r.charged)
		v.Sums = r.sums()
		return v, err
	}, string(q.Dimension), packed, q.Buckets.End, d.all, d.named)
	d.loose = append(d.loose, rest...)
	return err
}

// packedValue is about how many bytes a value takes in a pack.
const packedValue = 20

// valueSize is how large a value is in the range.
type valueSize struct {
	value   string
	number  int32 // among the values, in the order in which they appear first
	kept    bool
	events  int64
	charged metering.Total
}

// valueSizes numbers the values of a range and adds up how large each is.
type valueSizes struct {
	list  []valueSize
	known map[string]int32
}

func (s *valueSizes) add(v *rollup.ValueSums) (number int32) {
	number, found := s.known[v.Value]
	if !found {
		number = int32(len(s.list))
		s.known[v.Value] = number
		s.list = append(s.list, valueSize{value: v.Value, number: number})
	}
	size := &s.list[number]
	size.events += v.Events
	size.charged = size.charged.Join(v.Charged)
	return number
}

// keep marks the values that are among the largest by events or by charges, this many of
// each.
func (s *valueSizes) keep(values int) {
	if values == 0 {
		return
	}
	for _, order := range []func(a, b *valueSize) int{byEvents, byCharge} {
		for _, size := range first(s.list, values, order) {
			size.kept = true
		}
	}
}

// valuePlace is a value in a pack.
type valuePlace struct{ number, at int32 }

// measure adds up how large each value is. It returns the values of each pack, and the
// sums of each pack.
func (d *valueDays) measure(sizes *valueSizes) (places [][]valuePlace, totals []rollup.Sums, err error) {
	places, totals = make([][]valuePlace, len(d.packs)), make([]rollup.Sums, len(d.packs))
	for i, p := range d.packs {
		list, total := make([]valuePlace, 0, len(p.pack)/packedValue), rollup.Sums{}
		if err := rollup.UnpackValues(p.pack, func(at int, v *rollup.ValueSums) {
			list = append(list, valuePlace{sizes.add(v), int32(at)})
			total.Include(&v.Sums)
		}); err != nil {
			return nil, nil, err
		}
		places[i], totals[i] = list, total
	}
	for i := range d.loose {
		sizes.add(&d.loose[i].ValueSums)
	}
	return places, totals, nil
}

func byEvents(a, b *valueSize) int {
	return cmp.Or(cmp.Compare(b.events, a.events), strings.Compare(a.value, b.value))
}

func byCharge(a, b *valueSize) int {
	return cmp.Or(b.charged.Compare(a.charged), strings.Compare(a.value, b.value))
}

// first are the first in an order, at most this many. It sorts no more than those.
func first(sizes []valueSize, most int, order func(a, b *valueSize) int) (list []*valueSize) {
	for i := range sizes {
		s := &sizes[i]
		if len(list) == most && order(s, list[most-1]) > 0 {
			continue
		}
		at, _ := slices.BinarySearchFunc(list, s, order)
		list = slices.Insert(list, at, s)
		list = list[:min(len(list), most)]
	}
	return list
}

// rows adds up the largest values by bucket, and the others together.
func (d *valueDays) rows(b rollup.Buckets, values int) ([]Row, error) {
	sizes := valueSizes{list: make([]valueSize, 0, rollup.MaxValues), known: make(map[string]int32, rollup.MaxValues)}
	places, totals, err := d.measure(&sizes)
	if err != nil {
		return nil, err
	}
	sizes.keep(values)
	sums := bucketSums{}
	for i, p := range d.packs {
		bucket, others, kept := b.Find(p.day), totals[i], 0
		for _, place := range places[i] {
			if size := &sizes.list[place.number]; size.kept {
				own := rollup.SumsAt(p.pack, int(place.at))
				sums.add(bucketValue{bucket, p.credit, size.value}, own)
				others = others.Without(own)
				kept++
			}
		}
		if kept < len(places[i]) {
			sums.add(bucketValue{bucket, p.credit, rollup.OtherValue}, others)
		}
	}
	for _, v := range d.loose {
		value := rollup.OtherValue
		if sizes.list[sizes.known[v.Value]].kept {
			value = v.Value
		}
		sums.add(bucketValue{b.Find(v.day), v.credit, value}, v.Sums)
	}
	return sums.rows(b), nil
}

// bucketValue is a value of a credit in a bucket.
type bucketValue struct {
	bucket int
	credit ids.ID
	value  string
}

type bucketSums map[bucketValue]rollup.Sums

func (s bucketSums) add(at bucketValue, more rollup.Sums) { s[at] = s[at].Add(more) }

func (s bucketSums) rows(b rollup.Buckets) []Row {
	hashes, rows := map[string]ids.ID{}, make([]Row, 0, len(s))
	for at, sums := range s {
		hash, known := hashes[at.value]
		if !known {
			sum := sha256.Sum256([]byte(at.value))
			hash = ids.ID(sum[:16])
			hashes[at.value] = hash
		}
		rows = append(rows, Row{Start: b.Starts[at.bucket], CreditID: at.credit, Value: at.value, ValueHash: hash, Sums: sums})
	}
	sortRows(rows)
	return rows
}

// sortRows moves no rows while it compares them: they are large.
func sortRows(rows []Row) {
	order := make([]*Row, len(rows))
	for i := range rows {
		order[i] = &rows[i]
	}
	slices.SortFunc(order, (*Row).compare)
	sorted := make([]Row, len(rows))
	for i, r := range order {
		sorted[i] = *r
	}
	copy(rows, sorted)
}

// compare orders rows by bucket, then by the ids of the group.
func (r *Row) compare(other *Row) int {
	if r.Start != other.Start {
		return cmp.Compare(r.Start, other.Start)
	}
	return cmp.Or(bytes.Compare(r.FeatureID[:], other.FeatureID[:]), bytes.Compare(r.CreditID[:], other.CreditID[:]),
		bytes.Compare(r.KeyID[:], other.KeyID[:]), bytes.Compare(r.ValueHash[:], other.ValueHash[:]))
}
