package docs

import (
	"fmt"
	"html"
	"slices"
	"strings"
)

// step is one line of a flow: "Your server -> Purser: check".
type step struct{ from, to, label string }

// parseFlow reads the steps of a block in the language "flow".
func parseFlow(text string) (lanes []string, steps []step, err error) {
	for line := range strings.Lines(text) {
		ends, label, hasLabel := strings.Cut(strings.TrimSpace(line), ": ")
		from, to, hasArrow := strings.Cut(ends, " -> ")
		if !hasLabel || !hasArrow || from == to {
			return nil, nil, fmt.Errorf("the flow has the line %q, and not A -> B: what", line)
		}
		for _, lane := range []string{from, to} {
			if !slices.Contains(lanes, lane) {
				lanes = append(lanes, lane)
			}
		}
		steps = append(steps, step{from, to, label})
	}
	if len(steps) == 0 {
		return nil, nil, fmt.Errorf("the flow is empty")
	}
	return lanes, steps, nil
}

// Sizes of a flow, in units of its own; the stylesheet sets colours and fonts.
const (
	laneWidth  = 240
	laneTop    = 40
	stepHeight = 44
	boxWidth   = 150
)

// flowSVG draws who sends what to whom, from top to bottom. Its colours are the page's, so it
// fits light and dark; a screen reader gets the steps as text.
func flowSVG(text string) (string, error) {
	lanes, steps, err := parseFlow(text)
	if err != nil {
		return "", err
	}
	width, height := laneWidth*len(lanes), laneTop+stepHeight*len(steps)+24
	center := func(lane string) int { return laneWidth/2 + laneWidth*slices.Index(lanes, lane) }
	var said []string
	for _, s := range steps {
		said = append(said, s.from+" to "+s.to+": "+s.label)
	}
	var out strings.Builder
	fmt.Fprintf(&out, `<div data-flow role="region" aria-label="Diagram" tabindex="0"><svg viewBox="0 0 %d %d" role="img" aria-label="%s">`,
		width, height, html.EscapeString(strings.Join(said, ". ")))
	for _, lane := range lanes {
		x := center(lane)
		fmt.Fprintf(&out, `<line data-part="lane" x1="%d" y1="%d" x2="%[1]d" y2="%[3]d"/>`, x, laneTop, height-4)
		fmt.Fprintf(&out, `<rect data-part="box" x="%d" y="4" width="%d" height="32" rx="6"/>`, x-boxWidth/2, boxWidth)
		fmt.Fprintf(&out, `<text data-part="name" x="%d" y="25" text-anchor="middle">%s</text>`, x, html.EscapeString(lane))
	}
	for i, s := range steps {
		from, to, y := center(s.from), center(s.to), laneTop+stepHeight*(i+1)
		point := 8
		if to < from {
			point = -point
		}
		fmt.Fprintf(&out, `<line data-part="arrow" x1="%d" y1="%d" x2="%d" y2="%[2]d"/>`, from, y, to-point)
		fmt.Fprintf(&out, `<polygon data-part="point" points="%d,%d %d,%d %d,%d"/>`, to, y, to-point, y-5, to-point, y+5)
		fmt.Fprintf(&out, `<text x="%d" y="%d" text-anchor="middle">%s</text>`, (from+to)/2, y-8, html.EscapeString(s.label))
	}
	out.WriteString("</svg></div>\n")
	return out.String(), nil
}
