package pg

// OrNull stores a noun's zero, which means none, as NULL.
func OrNull[T comparable](value T) *T {
	var zero T
	if value == zero {
		return nil
	}
	return &value
}

// OrZero is the value of a column that may be NULL.
func OrZero[T any](value *T) (v T) {
	if value != nil {
		v = *value
	}
	return v
}
