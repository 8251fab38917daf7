package docs

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"purser/api/openapi"
)

// Reference is the OpenAPI document as people read it.
type Reference struct {
	Version      string
	Introduction string // HTML
	Groups       []Group
	Webhooks     []Webhook
}

// Webhook is one type of notification.
type Webhook struct {
	Type        string // such as balance.low; also the anchor on the page
	Description string // HTML
	Text        string // the description as it is written
	Data        []Field
	Example     string // JSON
}

// Group is the operations of one tag.
type Group struct {
	Slug        string
	Name        string
	Description string
	Operations  []Operation
}

// Operation is one method of one path.
type Operation struct {
	ID          string // as in operationId; also the anchor on the page
	Method      string
	Path        string // with its parameters in braces
	Summary     string
	Description string // HTML
	Permission  string // empty when no key is needed
	Parameters  []Field
	Body        []Field
	BodyExample string // JSON; empty when there is no body
	Answers     []Answer
	Refusals    []Answer // those that only carry an error
	address     string   // the path with example parameters
}

// Field is a parameter or a member of a body.
type Field struct {
	Name        string
	In          string // path, query or header, for parameters
	Type        string // such as "string" or "list of objects"
	Required    bool
	Default     string   // JSON; empty when there is none
	Values      []string // all that are allowed, when they are few
	Rule        string   // the bounds in words
	Description string   // HTML
	Fields      []Field  // of the object, or of each object of the list
}

// Answer is what an operation may reply with a status.
type Answer struct {
	Status      int
	Description string
	Fields      []Field
	Example     string // JSON
}

// ReadReference reads an OpenAPI document. It knows what our own document uses and no
// more of the standard.
func ReadReference(root *openapi.Object) (*Reference, error) {
	r := &referenceReader{root: root}
	info := root.Object("info")
	reference := &Reference{Version: info.Text("version"), Introduction: r.html(textOf(info, "description"))}
	byTag := map[string][]Operation{}
	for path, methods := range root.Object("paths").Objects() {
		for method, node := range methods.Objects() {
			op := r.operation(method, path, node)
			tag := fmt.Sprint(node.List("tags")...)
			byTag[tag] = append(byTag[tag], op)
		}
	}
	for _, item := range root.List("tags") {
		tag, _ := item.(*openapi.Object)
		name := tag.Text("name")
		reference.Groups = append(reference.Groups, Group{
			Slug:        strings.ToLower(name),
			Name:        name,
			Description: textOf(tag, "description"),
			Operations:  byTag[name],
		})
	}
	for name, methods := range root.Object("webhooks").Objects() {
		reference.Webhooks = append(reference.Webhooks, r.webhook(name, methods.Object("post")))
	}
	return reference, r.problem
}

func (r *referenceReader) webhook(name string, node *openapi.Object) Webhook {
	media := r.media(node.Object("requestBody"))
	text := textOf(node, "description")
	w := Webhook{Type: name, Text: text, Description: r.html(text), Example: showJSON(media.Get("example"))}
	for _, field := range r.fields(media.Object("schema")) {
		if field.Name == "data" {
			w.Data = field.Fields
		}
	}
	return w
}

// referenceReader keeps the first thing that it could not read.
type referenceReader struct {
	root    *openapi.Object
	problem error
}

func (r *referenceReader) fail(err error) {
	if r.problem == nil {
		r.problem = err
	}
}

func (r *referenceReader) html(source string) string {
	shown, err := toHTML(source)
	if err != nil {
		r.fail(fmt.Errorf("%q: %w", source, err))
	}
	return shown
}

func (r *referenceReader) operation(method, path string, node *openapi.Object) Operation {
	op := Operation{
		ID:          textOf(node, "operationId"),
		Method:      strings.ToUpper(method),
		Path:        path,
		Summary:     textOf(node, "summary"),
		Description: r.html(textOf(node, "description")),
		Permission:  textOf(node, "x-permission"),
		address:     path,
	}
	for status, response := range node.Object("responses").Objects() {
		answer := r.answer(status, response)
		if answer.Status >= 400 {
			op.Refusals = append(op.Refusals, answer)
		} else {
			op.Answers = append(op.Answers, answer)
		}
	}
	if media := r.media(node.Object("requestBody")); media != nil {
		op.Body = r.fields(media.Object("schema"))
		op.BodyExample = showJSON(media.Get("example"))
	}
	r.parameters(&op, node)
	return op
}

// parameters reads those of the path and the query, and makes the example's
// address from them.
func (r *referenceReader) parameters(op *Operation, node *openapi.Object) {
	var query []string
	for _, item := range node.List("parameters") {
		parameter, _ := item.(*openapi.Object)
		parameter = r.resolve(parameter)
		field := r.field(textOf(parameter, "name"), parameter.Object("schema"))
		field.In, field.Required = textOf(parameter, "in"), parameter.Bool("required")
		if parameter.Has("description") {
			field.Description = r.html(textOf(parameter, "description"))
		}
		op.Parameters = append(op.Parameters, field)
		example := r.example(node, parameter)
		if field.In == "path" {
			op.address = strings.ReplaceAll(op.address, "{"+field.Name+"}", example)
		} else if field.Required {
			query = append(query, field.Name+"="+example)
		}
	}
	if len(query) > 0 {
		op.address += "?" + strings.Join(query, "&")
	}
}

func (r *referenceReader) answer(status string, node *openapi.Object) Answer {
	code, err := strconv.Atoi(status)
	if err != nil {
		r.fail(fmt.Errorf("the status %s is not a number", status))
	}
	node = r.resolve(node)
	media := r.media(node)
	return Answer{
		Status:      code,
		Description: textOf(node, "description"),
		Fields:      r.fields(media.Object("schema")),
		Example:     showJSON(media.Get("example")),
	}
}

// example is a value for a parameter: the one that the example answer shows under
// the same name, so that question and answer fit together, or else its own.
func (r *referenceReader) example(operation, parameter *openapi.Object) string {
	for _, response := range operation.Object("responses").Objects() {
		answer := r.media(response).Object("example")
		if shown := textOf(answer, parameter.Text("name")); shown != "" {
			return shown
		}
	}
	return fmt.Sprint(parameter.Get("example"))
}

func (r *referenceReader) media(node *openapi.Object) *openapi.Object {
	return r.resolve(node).Object("content").Object("application/json")
}

// Curl is a command that calls the operation at the server's address, with the
// key in PURSER_KEY.
func (o Operation) Curl(address string) string {
	parts := []string{"curl"}
	if o.Method != "GET" && o.Method != "POST" {
		parts[0] += " -X " + o.Method
	}
	parts[0] += " '" + address + o.address + "'"
	if o.Permission != "" {
		parts = append(parts, `-H "Authorization: Bearer $PURSER_KEY"`)
	}
	if o.BodyExample != "" {
		parts = append(parts, "--json '"+o.BodyExample+"'")
	}
	return strings.Join(parts, " \\\n  ")
}

// Variants are the command, and its translations for operations that need a key.
func (o Operation) Variants(address string) ([]Variant, error) {
	command := o.Curl(address)
	if o.Permission == "" {
		return []Variant{{Language: Languages[0], Text: command}}, nil
	}
	call := apiCall{method: o.Method, path: o.address}
	if o.BodyExample != "" {
		body, err := openapi.Parse([]byte(o.BodyExample))
		if err != nil {
			return nil, err
		}
		call.body = body
	}
	return variants(command, []apiCall{call})
}

// Examples are the calls of all operations at a server's address, by the operation's id.
func (r *Reference) Examples(address string) (map[string][]Variant, error) {
	all := map[string][]Variant{}
	for _, group := range r.Groups {
		for _, op := range group.Operations {
			variants, err := op.Variants(address)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", op.ID, err)
			}
			all[op.ID] = variants
		}
	}
	return all, nil
}

// FindGroup gives the group with the slug.
func (r *Reference) FindGroup(slug string) (Group, bool) {
	at := slices.IndexFunc(r.Groups, func(g Group) bool { return g.Slug == slug })
	if at < 0 {
		return Group{}, false
	}
	return r.Groups[at], true
}

// textOf is a member's text without the line break that YAML leaves at its end.
func textOf(node *openapi.Object, name string) string { return strings.TrimSpace(node.Text(name)) }

// resolve follows a reference; what leads nowhere is empty.
func (r *referenceReader) resolve(node *openapi.Object) *openapi.Object {
	found, err := r.root.Resolve(node)
	if err != nil {
		r.fail(err)
	}
	return found
}
