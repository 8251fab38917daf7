package pg

import (
	"fmt"
	"math/big"

	"github.com/jackc/pgx/v5/pgtype"

	"purser/metering"
)

// Amount carries a metering.Amount to and from a numeric column, exactly.
type Amount metering.Amount

// NumericValue gives pgx the amount as a whole number.
func (a Amount) NumericValue() (pgtype.Numeric, error) {
	return pgtype.Numeric{Int: new(big.Int).SetUint64(uint64(a)), Valid: true}, nil
}

// ScanNumeric takes the amount from a column.
func (a *Amount) ScanNumeric(n pgtype.Numeric) error {
	whole, err := wholeNumber(n)
	if err != nil {
		return err
	}
	if whole.Sign() < 0 || !whole.IsUint64() || metering.Amount(whole.Uint64()) > metering.MaxAmount {
		return fmt.Errorf("store: %s is not an amount", whole)
	}
	*a = Amount(whole.Uint64())
	return nil
}

// Delta carries a metering.Delta to and from a signed numeric column.
type Delta metering.Delta

// NumericValue gives pgx the signed number.
func (d Delta) NumericValue() (pgtype.Numeric, error) {
	return pgtype.Numeric{Int: metering.Delta(d).Signed(), Valid: true}, nil
}

// ScanNumeric takes the signed number from a column.
func (d *Delta) ScanNumeric(n pgtype.Numeric) error {
	whole, err := wholeNumber(n)
	if err != nil {
		return err
	}
	size := new(big.Int).Abs(whole)
	if !size.IsUint64() || metering.Amount(size.Uint64()) > metering.MaxAmount {
		return fmt.Errorf("store: %s is not a change of an amount", whole)
	}
	*d = Delta{Amount: metering.Amount(size.Uint64()), Out: whole.Sign() < 0}
	return nil
}

// Total reads a metering.Total from a sum that the query casts to text.
type Total metering.Total

// ScanText takes the total from a column.
func (t *Total) ScanText(v pgtype.Text) error {
	total, ok := metering.ParseTotal(v.String)
	if !ok {
		return fmt.Errorf("store: %q is not a total", v.String)
	}
	*t = Total(total)
	return nil
}

var ten = big.NewInt(10)

// wholeNumber undoes the exponent with which Postgres shortens trailing zeros.
func wholeNumber(n pgtype.Numeric) (*big.Int, error) {
	if !n.Valid || n.NaN || n.InfinityModifier != pgtype.Finite || n.Exp < 0 || n.Exp > 20 {
		return nil, fmt.Errorf("store: a numeric column holds no whole number")
	}
	power := new(big.Int).Exp(ten, big.NewInt(int64(n.Exp)), nil)
	return power.Mul(power, n.Int), nil
}
