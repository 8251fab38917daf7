package support

import (
	"purser/docs"
	"purser/fault"
	"purser/views/component"
	"purser/views/layout"
)

// Quickstart leads from a new application to its first event. A step is done when its
// result exists.
type Quickstart struct {
	Frame    layout.Frame
	Path     string // of this page
	Steps    []component.Step
	Missing  []component.CommandLine // what to run before the first use can be paid for
	Language docs.Language
	Snippet  string
	Call     docs.Call
	Done     bool // an event has come
	Failures []FailedCall
	Events   string // where the events are listed
}

// FailedCall is a request that came and was refused.
type FailedCall struct {
	At     int64
	Method string
	Route  string
	Status int
	Code   fault.Code
}

func (q Quickstart) tabs() component.TabRow {
	row := component.TabRow{Label: "Languages"}
	for _, language := range docs.Languages {
		row.Tabs = append(row.Tabs, component.Tab{Label: language.Name, Href: q.in(language), Current: language.Key == q.Language.Key})
	}
	return row
}

// in is this page with the snippet in a language.
func (q Quickstart) in(language docs.Language) string { return q.Path + "?language=" + language.Key }

func (q Quickstart) snippet() component.CommandLine {
	return component.CommandLine{ID: "snippet", Label: "Code in " + q.Language.Name + " to track usage", Text: q.Snippet}
}

// Read from the terminal, so that the secret stays out of the shell's history.
func (q Quickstart) holdKey() component.CommandLine {
	return component.CommandLine{ID: "hold-key", Label: "Command to set the API key", Text: "read -r PURSER_KEY && export PURSER_KEY"}
}
