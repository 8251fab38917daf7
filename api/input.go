package api

import "purser/metering"

// input is validated request data: a JSON object, or the parameters of a path or query,
// with defaults filled in. An absent field without a default reads as the zero value;
// Has distinguishes the two.
type input map[string]any

// Has reports whether the field was given or has a default.
func (in input) Has(name string) bool {
	_, given := in[name]
	return given
}

func (in input) Text(name string) string { return field[string](in, name) }

// Int reads an integer.
func (in input) Int(name string) int64 { return field[int64](in, name) }

// Bool reads true or false.
func (in input) Bool(name string) bool { return field[bool](in, name) }

// Amount reads an amount of nanocredits. The schema lets through only what parses.
func (in input) Amount(name string) metering.Amount {
	amount, _ := metering.ParseAmount(in.Text(name))
	return amount
}

// OptionalText reads a string, nil when it is absent.
func (in input) OptionalText(name string) *string { return optional(in, name, in.Text) }

// OptionalInt reads an integer, nil when it is absent.
func (in input) OptionalInt(name string) *int64 { return optional(in, name, in.Int) }

// OptionalBool reads true or false, nil when it was not given.
func (in input) OptionalBool(name string) *bool { return optional(in, name, in.Bool) }

// OptionalAmount reads an amount, nil when it is absent.
func (in input) OptionalAmount(name string) *metering.Amount {
	return optional(in, name, in.Amount)
}

// Properties reads an object of strings, empty when it is absent.
func (in input) Properties(name string) metering.Properties {
	given := in.Object(name)
	if len(given) == 0 {
		return ""
	}
	values := make(map[string]string, len(given))
	for key := range given {
		values[key] = given.Text(key)
	}
	return metering.NewProperties(values)
}

// Object reads an object, for its own fields to be read.
func (in input) Object(name string) input { return field[input](in, name) }

// Objects reads an array of objects.
func (in input) Objects(name string) []input {
	items := field[[]any](in, name)
	objects := make([]input, len(items))
	for i, item := range items {
		objects[i] = item.(input)
	}
	return objects
}

// Amounts reads an array of amounts.
func (in input) Amounts(name string) (list []metering.Amount) {
	for _, item := range field[[]any](in, name) {
		amount, _ := metering.ParseAmount(item.(string))
		list = append(list, amount)
	}
	return list
}

// Ints reads an array of integers.
func (in input) Ints(name string) (list []int64) {
	for _, item := range field[[]any](in, name) {
		list = append(list, item.(int64))
	}
	return list
}

func optional[T any](in input, name string, read func(string) T) *T {
	if !in.Has(name) {
		return nil
	}
	value := read(name)
	return &value
}

// field panics if the field has another type: the schema was validated, so the handler
// disagrees with the document.
func field[T any](in input, name string) (value T) {
	if given := in[name]; given != nil {
		value = given.(T)
	}
	return value
}
