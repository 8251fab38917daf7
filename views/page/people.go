package page

import "purser/views/component"

// Draft is a form as it was typed, and what is wrong with it. The zero value is
// an empty form.
type Draft struct {
	Values   map[string]string
	Problems []component.Problem
}

// label is the label of a field, with what is wrong with its value.
func (d Draft) label(name, text, hint string) component.Label {
	return component.Label{Name: name, Text: text, Hint: hint, Error: d.problem(name)}
}

func (d Draft) problem(name string) string {
	for _, p := range d.Problems {
		if p.Field == name {
			return p.Message
		}
	}
	return ""
}

// text is a field of one line.
func (d Draft) text(name, text, hint, autocomplete string) component.Input {
	return component.Input{Label: d.label(name, text, hint), Value: d.Values[name], Autocomplete: autocomplete, MaxLength: 254}
}

// password is a field whose value is never sent back.
func (d Draft) password(name, text, hint, autocomplete string) component.Input {
	return component.Input{Label: d.label(name, text, hint), Type: "password", Autocomplete: autocomplete, MaxLength: 128}
}

// email is a field for an address.
func (d Draft) email(hint string) component.Input {
	i := d.text("email", "Email address", hint, "username")
	i.Type, i.InputMode = "email", "email"
	return i
}

// code is a field for digits of an authenticator, or a recovery code.
func (d Draft) code(hint string) component.Input {
	return component.Input{Label: d.label("code", "Code", hint), Autocomplete: "one-time-code", MaxLength: 40, Mono: true, Focus: true}
}

// focused gives a field the focus when the page opens, unless the form came back:
// then the summary has it.
func (d Draft) focused(i component.Input) component.Input {
	i.Focus = len(d.Problems) == 0
	return i
}
