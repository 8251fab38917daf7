package wire

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

// Column is a one-dimensional array parameter for unnest.
type Column struct {
	oid   uint32 // of the elements
	Count int
	nulls bool
	data  []byte
}

func (c *Column) Null() {
	c.Count++
	c.nulls = true
	c.data = binary.BigEndian.AppendUint32(c.data, 0xffffffff)
}

func (c *Column) size(n int) {
	c.Count++
	c.data = binary.BigEndian.AppendUint32(c.data, uint32(n))
}

func (c *Column) ID(id ids.ID) {
	c.size(len(id))
	c.data = append(c.data, id[:]...)
}

// OptionalID appends an id, or NULL for the zero id.
func (c *Column) OptionalID(id ids.ID) {
	if id.IsZero() {
		c.Null()
		return
	}
	c.ID(id)
}

// Int8 appends a bigint.
func (c *Column) Int8(v int64) {
	c.size(8)
	c.data = binary.BigEndian.AppendUint64(c.data, uint64(v))
}

// Int4 appends an integer.
func (c *Column) Int4(v int32) {
	c.size(4)
	c.data = binary.BigEndian.AppendUint32(c.data, uint32(v))
}

func (c *Column) Text(s string) {
	c.size(len(s))
	c.data = append(c.data, s...)
}

// OptionalText appends a text, or NULL for an empty one.
func (c *Column) OptionalText(s string) {
	if s == "" {
		c.Null()
		return
	}
	c.Text(s)
}

// EventID writes an event id as it is stored. The canonical text of a UUID, the
// recommended form, takes 17 bytes instead of 36: a zero byte, which no text contains,
// and the UUID. Every other id is its text. The sort order is the same either way.
func (c *Column) EventID(id string) {
	var short [17]byte
	if !pg.PackUUID(short[1:], id) {
		c.Text(id)
		return
	}
	c.size(len(short))
	c.data = append(c.data, short[:]...)
}

// Bool appends a boolean.
func (c *Column) Bool(b bool) {
	c.size(1)
	c.data = append(c.data, BoolByte(b))
}

// BoolByte is how Postgres writes a boolean.
func BoolByte(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// Amount writes a numeric: a header of four numbers, then groups of four digits.
func (c *Column) Amount(a metering.Amount) {
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

// Encode appends the array in binary format.
func (c *Column) Encode(buf []byte) []byte {
	if c.Count == 0 {
		buf = append(buf, 0, 0, 0, 0, 0, 0, 0, 0)
		return binary.BigEndian.AppendUint32(buf, c.oid)
	}
	buf = binary.BigEndian.AppendUint32(buf, 1)
	buf = append(buf, 0, 0, 0, BoolByte(c.nulls))
	buf = binary.BigEndian.AppendUint32(buf, c.oid)
	buf = binary.BigEndian.AppendUint32(buf, uint32(c.Count))
	buf = binary.BigEndian.AppendUint32(buf, 1)
	return append(buf, c.data...)
}

// single is the value of a column with one element, as a scalar parameter.
func (c *Column) single() []byte {
	if c.nulls {
		return nil
	}
	return c.data[4:]
}

// An empty column of each type.
var (
	UUIDColumn    = Column{oid: pgtype.UUIDOID}
	Int8Column    = Column{oid: pgtype.Int8OID}
	Int4Column    = Column{oid: pgtype.Int4OID}
	TextColumn    = Column{oid: pgtype.TextOID}
	ByteaColumn   = Column{oid: pgtype.ByteaOID}
	BoolColumn    = Column{oid: pgtype.BoolOID}
	NumericColumn = Column{oid: pgtype.NumericOID}
)

var errMalformedColumn = errors.New("store: column has an unexpected format")

// Row reads the columns of a result in order and keeps the first error. A NULL reads as
// zero.
type Row struct {
	values [][]byte
	next   int
	err    error
}

func NewRow(values [][]byte) Row { return Row{values: values} }

// Err is the first error.
func (r *Row) Err() error { return r.err }

// Fail ends the row with an error of its reader.
func (r *Row) Fail(err error) { r.err = err }

// Skip leaves columns out.
func (r *Row) Skip(columns int) { r.next += columns }

// SkipTo goes on with the column of this number.
func (r *Row) SkipTo(column int) { r.next = column }

// FirstID is the id in the first column, wherever the row is read.
func (r *Row) FirstID() ids.ID { return ids.ID(r.values[0]) }

func (r *Row) value(size int) []byte {
	v := r.values[r.next]
	r.next++
	if v != nil && size > 0 && len(v) != size {
		r.err = errMalformedColumn
		return nil
	}
	return v
}

// IsNull reports whether the next column is NULL.
func (r *Row) IsNull() bool { return r.values[r.next] == nil }

func (r *Row) ID() (id ids.ID) {
	copy(id[:], r.value(len(id)))
	return id
}

func (r *Row) Int8() int64 {
	if v := r.value(8); v != nil {
		return int64(binary.BigEndian.Uint64(v))
	}
	return 0
}

func (r *Row) Int4() int32 {
	if v := r.value(4); v != nil {
		return int32(binary.BigEndian.Uint32(v))
	}
	return 0
}

func (r *Row) Bool() bool {
	v := r.value(1)
	return v != nil && v[0] == 1
}

func (r *Row) Text() string { return string(r.value(0)) }

// Bytes reads a bytea or a text without copying it.
func (r *Row) Bytes() []byte { return r.value(0) }

// EventID reads an event id as it is stored.
func (r *Row) EventID() string { return pg.EventIDOf(r.value(0)) }

// Amount reads a numeric that must be a whole number of at most 19 digits.
func (r *Row) Amount() metering.Amount {
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

// EncodeAll encodes columns as array parameters.
func EncodeAll(columns []Column) [][]byte {
	values := make([][]byte, len(columns))
	for i := range columns {
		values[i] = columns[i].Encode(make([]byte, 0, 20+len(columns[i].data)))
	}
	return values
}
