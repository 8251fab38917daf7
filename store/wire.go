package store

import (
	"encoding/binary"
	"errors"
	"math/bits"

	"github.com/jackc/pgx/v5/pgtype"

	"purser/ids"
	"purser/metering"
	"purser/store/internal/pg"
)

// The hot path encodes Postgres' binary format itself: a batch has some twenty columns
// of hundreds of rows, and reflection over each value would cost more than the rest of
// the batch.

// column is a one-dimensional array parameter for unnest.
type column struct {
	oid   uint32 // of the elements
	count int
	nulls bool
	data  []byte
}

func (c *column) null() {
	c.count++
	c.nulls = true
	c.data = binary.BigEndian.AppendUint32(c.data, 0xffffffff)
}

func (c *column) size(n int) {
	c.count++
	c.data = binary.BigEndian.AppendUint32(c.data, uint32(n))
}

func (c *column) id(id ids.ID) {
	c.size(len(id))
	c.data = append(c.data, id[:]...)
}

func (c *column) optionalID(id ids.ID) {
	if id.IsZero() {
		c.null()
		return
	}
	c.id(id)
}

func (c *column) int8(v int64) {
	c.size(8)
	c.data = binary.BigEndian.AppendUint64(c.data, uint64(v))
}

func (c *column) int4(v int32) {
	c.size(4)
	c.data = binary.BigEndian.AppendUint32(c.data, uint32(v))
}

func (c *column) text(s string) {
	c.size(len(s))
	c.data = append(c.data, s...)
}

func (c *column) optionalText(s string) {
	if s == "" {
		c.null()
		return
	}
	c.text(s)
}

// eventID writes an event id as it is stored. The canonical text of a UUID, the
// recommended form, takes 17 bytes instead of 36: a zero byte, which no text contains,
// and the UUID. Every other id is its text. The sort order is the same either way.
func (c *column) eventID(id string) {
	var short [17]byte
	if !pg.PackUUID(short[1:], id) {
		c.text(id)
		return
	}
	c.size(len(short))
	c.data = append(c.data, short[:]...)
}

func (c *column) bool(b bool) {
	c.size(1)
	c.data = append(c.data, boolByte(b))
}

func boolByte(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// amount writes a numeric: a header of four numbers, then groups of four digits.
func (c *column) amount(a metering.Amount) {
	var groups [5]uint16
	n := 0
	for rest := uint64(a); rest > 0; rest /= 10_000 {
		groups[n] = uint16(rest % 10_000)
		n++
	}
	last := 0 // trailing groups of zeros are left out; the weight implies them
	for last < n && groups[last] == 0 {
		last++
	}
	c.size(8 + 2*(n-last))
	c.data = binary.BigEndian.AppendUint16(c.data, uint16(n-last))
	c.data = binary.BigEndian.AppendUint16(c.data, uint16(max(n-1, 0)))
	c.data = append(c.data, 0, 0, 0, 0) // positive, no digits after the point
	for i := n - 1; i >= last; i-- {
		c.data = binary.BigEndian.AppendUint16(c.data, groups[i])
	}
}

// encode appends the array in binary format.
func (c *column) encode(buf []byte) []byte {
	if c.count == 0 {
		buf = append(buf, 0, 0, 0, 0, 0, 0, 0, 0)
		return binary.BigEndian.AppendUint32(buf, c.oid)
	}
	buf = binary.BigEndian.AppendUint32(buf, 1)
	buf = append(buf, 0, 0, 0, boolByte(c.nulls))
	buf = binary.BigEndian.AppendUint32(buf, c.oid)
	buf = binary.BigEndian.AppendUint32(buf, uint32(c.count))
	buf = binary.BigEndian.AppendUint32(buf, 1)
	return append(buf, c.data...)
}

// single is the value of a column with one element, as a scalar parameter.
func (c *column) single() []byte {
	if c.nulls {
		return nil
	}
	return c.data[4:]
}

var (
	uuidColumn    = column{oid: pgtype.UUIDOID}
	int8Column    = column{oid: pgtype.Int8OID}
	int4Column    = column{oid: pgtype.Int4OID}
	textColumn    = column{oid: pgtype.TextOID}
	byteaColumn   = column{oid: pgtype.ByteaOID}
	boolColumn    = column{oid: pgtype.BoolOID}
	numericColumn = column{oid: pgtype.NumericOID}
)

var errMalformedColumn = errors.New("store: column has an unexpected format")

// row reads the columns of a result in order and keeps the first error. A NULL reads as
// zero.
type row struct {
	values [][]byte
	next   int
	err    error
}

func (r *row) value(size int) []byte {
	v := r.values[r.next]
	r.next++
	if v != nil && size > 0 && len(v) != size {
		r.err = errMalformedColumn
		return nil
	}
	return v
}

func (r *row) isNull() bool { return r.values[r.next] == nil }

func (r *row) id() (id ids.ID) {
	copy(id[:], r.value(len(id)))
	return id
}

func (r *row) int8() int64 {
	if v := r.value(8); v != nil {
		return int64(binary.BigEndian.Uint64(v))
	}
	return 0
}

func (r *row) bool() bool {
	v := r.value(1)
	return v != nil && v[0] == 1
}

func (r *row) text() string { return string(r.value(0)) }

func (r *row) bytes() []byte { return r.value(0) }

func (r *row) eventID() string { return pg.EventIDOf(r.value(0)) }

// amount reads a numeric that must be a whole number of at most 19 digits.
func (r *row) amount() metering.Amount {
	v := r.value(0)
	if v == nil {
		return 0
	}
	if len(v) < 8 {
		r.err = errMalformedColumn
		return 0
	}
	groups := int(binary.BigEndian.Uint16(v))
	weight := int(int16(binary.BigEndian.Uint16(v[2:])))
	if len(v) != 8+2*groups || binary.BigEndian.Uint16(v[4:]) != 0 || weight > 4 || groups > weight+1 {
		if groups == 0 && len(v) == 8 {
			return 0
		}
		r.err = errMalformedColumn
		return 0
	}
	var sum uint64
	for i := 0; i <= weight; i++ {
		var group uint64
		if i < groups {
			group = uint64(binary.BigEndian.Uint16(v[8+2*i:]))
		}
		high, low := bits.Mul64(sum, 10_000)
		total, carry := bits.Add64(low, group, 0)
		if high != 0 || carry != 0 {
			r.err = errMalformedColumn
			return 0
		}
		sum = total
	}
	if metering.Amount(sum) > metering.MaxAmount {
		r.err = errMalformedColumn
		return 0
	}
	return metering.Amount(sum)
}
