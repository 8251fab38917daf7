package docs

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Reference is the OpenAPI document as people read it.
type Reference struct {
	Version      string
	Introduction string // HTML
	Groups       []Group
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

// ReadReference reads an OpenAPI document, as YAML or JSON. It knows what our own
// document uses and no more of the standard.
func ReadReference(document []byte) (*Reference, error) {
	root, err := parseTree(document)
	if err != nil {
		return nil, err
	}
	r := &referenceReader{root: root}
	info := root.object("info")
	reference := &Reference{Version: info.text("version"), Introduction: r.html(info.text("description"))}
	byTag := map[string][]Operation{}
	for _, path := range root.object("paths") {
		for _, method := range asTree(path.Value) {
			node := asTree(method.Value)
			op := r.operation(fmt.Sprint(method.Key), fmt.Sprint(path.Key), node)
			tag := fmt.Sprint(node.list("tags")...)
			byTag[tag] = append(byTag[tag], op)
		}
	}
	for _, item := range root.list("tags") {
		tag := asTree(item)
		name := tag.text("name")
		reference.Groups = append(reference.Groups, Group{
			Slug:        strings.ToLower(name),
			Name:        name,
			Description: tag.text("description"),
			Operations:  byTag[name],
		})
	}
	return reference, r.problem
}

// referenceReader keeps the first thing that it could not read.
type referenceReader struct {
	root    tree
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

func (r *referenceReader) operation(method, path string, node tree) Operation {
	op := Operation{
		ID:          node.text("operationId"),
		Method:      strings.ToUpper(method),
		Path:        path,
		Summary:     node.text("summary"),
		Description: r.html(node.text("description")),
		Permission:  node.text("x-permission"),
		address:     path,
	}
	for _, item := range node.object("responses") {
		answer := r.answer(fmt.Sprint(item.Key), asTree(item.Value))
		if answer.Status >= 400 {
			op.Refusals = append(op.Refusals, answer)
		} else {
			op.Answers = append(op.Answers, answer)
		}
	}
	if media := r.media(node.object("requestBody")); media != nil {
		op.Body = r.fields(media.object("schema"))
		op.BodyExample = showJSON(media.get("example"))
	}
	r.parameters(&op, node)
	return op
}

// parameters reads those of the path and the query, and makes the example's
// address from them.
func (r *referenceReader) parameters(op *Operation, node tree) {
	var query []string
	for _, item := range node.list("parameters") {
		parameter := r.resolve(asTree(item))
		field := r.field(parameter.text("name"), parameter.object("schema"))
		field.In, field.Required = parameter.text("in"), parameter.flag("required")
		if parameter.has("description") {
			field.Description = r.html(parameter.text("description"))
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

func (r *referenceReader) answer(status string, node tree) Answer {
	code, err := strconv.Atoi(status)
	if err != nil {
		r.fail(fmt.Errorf("the status %s is not a number", status))
	}
	node = r.resolve(node)
	media := r.media(node)
	return Answer{
		Status:      code,
		Description: node.text("description"),
		Fields:      r.fields(media.object("schema")),
		Example:     showJSON(media.get("example")),
	}
}

// example is a value for a parameter: the one that the example answer shows under
// the same name, so that question and answer fit together, or else its own.
func (r *referenceReader) example(operation, parameter tree) string {
	for _, item := range operation.object("responses") {
		answer := asTree(r.media(asTree(item.Value)).get("example"))
		if shown := answer.text(parameter.text("name")); shown != "" {
			return shown
		}
	}
	return fmt.Sprint(parameter.get("example"))
}

func (r *referenceReader) media(node tree) tree {
	return r.resolve(node).object("content").object("application/json")
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

// FindGroup gives the group with the slug.
func (r *Reference) FindGroup(slug string) (Group, bool) {
	at := slices.IndexFunc(r.Groups, func(g Group) bool { return g.Slug == slug })
	if at < 0 {
		return Group{}, false
	}
	return r.Groups[at], true
}
