package rollups

import (
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
func (a App) LargestValues(ctx context.Context, q Query, values int) (u Usage, err error) {
	err = a.read(ctx, func(ctx context.Context, tx *pg.Tx) error {
		u = Usage{}
		until, err := readSettled(ctx, tx)
		if err != nil {
			return err
		}
		u.Until = until.Until
		feature, err := q.feature(ctx, tx)
		if err != nil {
			return err
		}
		days := valueDays{packed: pg.OrZero(feature), all: feature, named: values > 0}
		if err := days.load(ctx, tx, q, min(max(until.Values, q.Buckets.From()), q.Buckets.End)); err != nil {
			return err
		}
		if u.Rows, err = days.rows(q.Buckets, values); err != nil {
			return err
		}
		return u.name(ctx, tx)
	})
	return u, err
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
		if err := row.Scan(&v.day, &v.credit, &r.events, &r.deduplicated, &r.quantity, &r.included, &r.charged); err != nil {
			return v, err
		}
		v.Sums, err = r.sums()
		return v, err
	}, args...); err != nil {
		return err
	}
	rest, err := pg.Collect(ctx, tx, sumValues, func(row pgx.CollectableRow) (v looseValue, err error) {
		var r sumRow
		if err := row.Scan(&v.day, &v.credit, &v.Value, &r.events, &r.deduplicated, &r.quantity, &r.included, &r.charged); err != nil {
			return v, err
		}
		v.Sums, err = r.sums()
		return v, err
	}, string(q.Dimension), packed, q.Buckets.End, d.all, d.named)
	d.loose = append(d.loose, rest...)
	return err
}

// each calls add with every value, of which a pack's follow each other.
func (d *valueDays) each(add func(day int64, credit ids.ID, v *rollup.ValueSums)) error {
	for _, p := range d.packs {
		if err := rollup.UnpackValues(p.pack, func(v *rollup.ValueSums) { add(p.day, p.credit, v) }); err != nil {
			return err
		}
	}
	for i := range d.loose {
		add(d.loose[i].day, d.loose[i].credit, &d.loose[i].ValueSums)
	}
	return nil
}

// packedValue is about how many bytes a value takes in a pack.
const packedValue = 20

// valueSize is how large a value is in the range.
type valueSize struct {
	value   string
	number  int // among the values, in the order in which they appear first
	events  int64
	charged metering.Total
}

// largest finds the values that are among the largest by events or by charges. It returns
// the number of each value in the order of each, and which numbers are kept.
func (d *valueDays) largest(values int) (numbers []int32, kept []bool, err error) {
	most := len(d.loose)
	for _, p := range d.packs {
		most += len(p.pack) / packedValue
	}
	numbers = make([]int32, 0, most)
	sizes, known := make([]valueSize, 0, rollup.MaxValues), make(map[string]int32, rollup.MaxValues)
	if err := d.each(func(_ int64, _ ids.ID, v *rollup.ValueSums) {
		number, found := known[v.Value]
		if !found {
			number = int32(len(sizes))
			known[v.Value] = number
			sizes = append(sizes, valueSize{value: v.Value, number: int(number)})
		}
		numbers = append(numbers, number)
		size := &sizes[number]
		size.events += v.Events
		size.charged = size.charged.Join(v.Charged)
	}); err != nil {
		return nil, nil, err
	}
	kept = make([]bool, len(sizes))
	for _, order := range []func(a, b *valueSize) int{byEvents, byCharge} {
		for _, s := range first(sizes, values, order) {
			kept[s.number] = true
		}
	}
	return numbers, kept, nil
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
func (d *valueDays) rows(b rollup.Buckets, values int) (rows []Row, err error) {
	numbers, kept := []int32(nil), []bool(nil)
	if values > 0 {
		if numbers, kept, err = d.largest(values); err != nil {
			return nil, err
		}
	}
	type place struct {
		bucket int
		credit ids.ID
		value  string
	}
	sums := map[place]rollup.Sums{}
	// Most values are not kept: those of a day and credit are added up first.
	var others rollup.Sums
	at, of, pending, next := place{value: rollup.OtherValue}, int64(-1), false, 0
	flush := func() {
		if pending {
			sums[at] = sums[at].Add(others)
			others, pending = rollup.Sums{}, false
		}
	}
	if err := d.each(func(day int64, credit ids.ID, v *rollup.ValueSums) {
		if day != of || credit != at.credit {
			flush()
			of, at.bucket, at.credit = day, b.Find(day), credit
		}
		if values > 0 && kept[numbers[next]] {
			own := place{at.bucket, credit, v.Value}
			sums[own] = sums[own].Add(v.Sums)
		} else {
			others, pending = others.Add(v.Sums), true
		}
		next++
	}); err != nil {
		return nil, err
	}
	flush()
	hashes := map[string]ids.ID{}
	rows = make([]Row, 0, len(sums))
	for at, s := range sums {
		hash, known := hashes[at.value]
		if !known {
			sum := sha256.Sum256([]byte(at.value))
			hash = ids.ID(sum[:16])
			hashes[at.value] = hash
		}
		rows = append(rows, Row{Start: b.Starts[at.bucket], CreditID: at.credit, Value: at.value, ValueHash: hash, Sums: s})
	}
	sortRows(rows)
	return rows, nil
}
