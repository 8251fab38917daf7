package component

// Draft is a form as it was typed, and what is wrong with it. The zero value is
// an empty form.
type Draft struct {
	Values   map[string]string
	Problems []Problem
}

// Label is the label of a field, with what is wrong with its value.
func (d Draft) Label(name, text, hint string) Label {
	return Label{Name: name, Text: text, Hint: hint, Error: d.Problem(name)}
}

func (d Draft) Problem(name string) string { return Wrong(d.Problems, name) }

// Text is a field of one line.
func (d Draft) Text(name, text, hint, autocomplete string) Input {
	return Input{Label: d.Label(name, text, hint), Value: d.Values[name], Autocomplete: autocomplete, MaxLength: 254}
}

// Password is a field whose value is never sent back.
func (d Draft) Password(name, text, hint, autocomplete string) Input {
	return Input{Label: d.Label(name, text, hint), Type: "password", Autocomplete: autocomplete, MaxLength: 128}
}

// Email is a field for an address.
func (d Draft) Email(hint string) Input {
	i := d.Text("email", "Email address", hint, "username")
	i.Type, i.InputMode = "email", "email"
	return i
}

// Code is a field for digits of an authenticator, or a recovery code.
func (d Draft) Code(hint string) Input {
	return Input{Label: d.Label("code", "Code", hint), Autocomplete: "one-time-code", MaxLength: 40, Mono: true, Focus: true}
}

// Focused gives a field the focus when the page opens, unless the form came back:
// then the summary has it.
func (d Draft) Focused(i Input) Input {
	i.Focus = len(d.Problems) == 0
	return i
}
