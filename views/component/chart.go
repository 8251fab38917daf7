package component

import (
	"math/bits"
	"strconv"
)

// Series is a bar for each step of time, oldest first.
type Series struct {
	ID       string // once in a page
	Title    string
	Unit     string // of the values, such as "tokens"; may be empty
	StepName string // head of the table's first column, such as "Day"
	Bars     []Bar
}

// Bar is one step: drawn by its value, read by its text.
type Bar struct {
	Label string
	Value uint64
	Text  string
}

// The chart's own units. The browser stretches them to the room that there is,
// so nothing in the drawing may have a shape that suffers.
const (
	chartWidth  = 1000
	chartHeight = 100
)

type drawnBar struct {
	Bar
	x, y, width, height string
}

// drawn places the bars. The tallest reaches the top, and one that is not zero
// can be seen.
func (s Series) drawn() []drawnBar {
	tallest := max(s.tallest().Value, 1)
	step := float64(chartWidth) / float64(max(len(s.Bars), 1))
	drawn := make([]drawnBar, len(s.Bars))
	for i, bar := range s.Bars {
		height := share(bar.Value, tallest, chartHeight)
		if bar.Value > 0 {
			height = max(height, 1)
		}
		drawn[i] = drawnBar{
			Bar:    bar,
			x:      coordinate((float64(i) + 0.1) * step),
			y:      strconv.FormatUint(chartHeight-height, 10),
			width:  coordinate(0.8 * step),
			height: strconv.FormatUint(height, 10),
		}
	}
	return drawn
}

// IsEmpty reports whether there is nothing to draw: no bar, or none that is not zero.
func (s Series) IsEmpty() bool { return s.tallest().Value == 0 }

func (s Series) tallest() (tallest Bar) {
	for _, bar := range s.Bars {
		if bar.Value > tallest.Value {
			tallest = bar
		}
	}
	return tallest
}

// share is value ÷ whole of the length, for a value that is not above the whole.
// The product needs 128 bits.
func share(value, whole, length uint64) uint64 {
	high, low := bits.Mul64(value, length)
	quotient, _ := bits.Div64(high, low, whole)
	return quotient
}

func coordinate(at float64) string { return strconv.FormatFloat(at, 'f', 1, 64) }
