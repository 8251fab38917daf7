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
	// Parts names what the bars are stacked of, from the bottom; none for plain bars.
	Parts []string
	// Before names the marks at the values of an earlier period; empty for none.
	Before string
	// Axis writes a value of the axis; plain digits when nil.
	Axis func(uint64) string
}

// Bar is one step: drawn by its value, read by its text.
type Bar struct {
	Label      string
	Value      uint64
	Text       string
	Parts      []Slice // one for each part of the series; their values make the bar's
	Before     uint64  // of the earlier period
	BeforeText string
}

// Slice is one part of a bar.
type Slice struct {
	Value uint64
	Text  string
}

// The numbers of lines and labels that fit.
const (
	chartLines = 4
	chartTicks = 7
	// MaxParts is how many parts have a colour of their own. The last is for the rest.
	MaxParts = 7
)

// scale is the value at the top: a round one that no bar passes, in as many whole steps as
// there are lines.
func (s Series) scale() uint64 {
	highest := max(s.tallest().Value, 1)
	for _, bar := range s.Bars {
		highest = max(highest, bar.Before)
	}
	for power := uint64(1); ; power *= 10 {
		for _, digits := range []uint64{1, 2, 4, 6, 8} {
			high, top := bits.Mul64(digits, power)
			if high != 0 {
				return highest
			}
			if top >= highest && top%chartLines == 0 {
				return top
			}
		}
	}
}

type chartLine struct {
	at   string // from the top
	text string
}

// lines are the grid, from the top to the base.
func (s Series) lines() (list []chartLine) {
	top := s.scale()
	for i := range chartLines + 1 {
		value := top - share(uint64(i), chartLines, top)
		list = append(list, chartLine{at: percent(float64(i) / chartLines), text: s.axisText(value)})
	}
	return list
}

func (s Series) axisText(value uint64) string {
	if s.Axis == nil {
		return CountText(value)
	}
	return s.Axis(value)
}

type drawnBar struct {
	Bar
	x, width    string // of the bar
	left, whole string // of its step
	middle      string
	anchor      string // of texts beside it
	before      string // height of the mark
	slices      []drawnSlice
	lines       []string // what pointing at it says
}

type drawnSlice struct {
	part      string // its number, for the colour
	y, height string
}

// drawn places the bars. A bar that is not zero can be seen.
func (s Series) drawn() []drawnBar {
	top, steps := s.scale(), float64(max(len(s.Bars), 1))
	drawn := make([]drawnBar, len(s.Bars))
	for i, bar := range s.Bars {
		left := float64(i) / steps
		d := drawnBar{
			Bar: bar, x: percent(left + 0.14/steps), width: percent(0.72 / steps), left: percent(left), whole: percent(1 / steps),
			middle: percent(left + 0.5/steps), anchor: anchorAt(left + 0.5/steps), lines: []string{bar.Label + ": " + bar.Text},
		}
		if s.Before != "" {
			if bar.Before > 0 {
				d.before = percent(1 - part(bar.Before, top))
			}
			d.lines = append(d.lines, s.Before+": "+bar.BeforeText)
		}
		slices := bar.Parts
		if len(s.Parts) == 0 {
			slices = []Slice{{Value: bar.Value}}
		}
		base := 0.0
		for n, slice := range slices {
			if slice.Value == 0 {
				continue
			}
			height := max(part(slice.Value, top), 0.006)
			d.slices = append(d.slices, drawnSlice{part: strconv.Itoa(n), y: percent(1 - base - height), height: percent(height)})
			base += height
			if len(s.Parts) > 0 {
				d.lines = append(d.lines, s.Parts[n]+": "+slice.Text)
			}
		}
		drawn[i] = d
	}
	return drawn
}

// ticks are the bars that have their label under them: some at even distances.
func (s Series) ticks() (list []drawnBar) {
	every := (len(s.Bars) + chartTicks - 1) / chartTicks
	for i, bar := range s.drawn() {
		if i%max(every, 1) == 0 {
			list = append(list, bar)
		}
	}
	return list
}

// anchorAt keeps a text inside of the drawing.
func anchorAt(at float64) string {
	switch {
	case at < 0.25:
		return "start"
	case at > 0.75:
		return "end"
	default:
		return "middle"
	}
}

// columns are the heads of the table.
func (s Series) columns() []Column {
	list := []Column{{Label: s.StepName}}
	for _, name := range s.Parts {
		list = append(list, Column{Label: name, End: true})
	}
	total := s.Title
	if len(s.Parts) > 0 {
		total = "Total"
	}
	list = append(list, Column{Label: total, End: true})
	if s.Before != "" {
		list = append(list, Column{Label: s.Before, End: true})
	}
	return list
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

// part is value ÷ whole, to be drawn.
func part(value, whole uint64) float64 { return float64(share(min(value, whole), whole, 1e6)) / 1e6 }

func percent(of float64) string { return strconv.FormatFloat(100*of, 'f', 2, 64) + "%" }
