package api

import (
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"purser/api/openapi"
)

//go:embed openapi.yaml
var openapiYAML []byte

// document is openapi.yaml, compiled for serving and for validating requests.
type document struct {
	json       []byte
	gzip       []byte // the same, compressed
	etag       string
	operations []*operation // sorted by path and method
}

// operation is one method of one path.
type operation struct {
	id         string
	method     string
	path       string  // with its parameters in braces, as in /v1/credits/{key}
	permission string  // empty if no key is required
	params     *schema // of the path
	query      *schema
	body       *schema // nil if the operation has none
	maxBody    int
	// envelope validates the body of an operation with a result per item: an invalid
	// item is part of the response, and refuses nothing. It is body otherwise.
	envelope *schema
	items    *schema // of such an operation
	maxItems int
	// idempotency is the schema of the header Idempotency-Key, for operations that take it.
	idempotency *schema
	responses   map[int]*response
	errors      []string // the codes of its refusals
}

// response is one documented response of an operation.
type response struct {
	headers *schema // the documented ones; others may be present
	body    *schema
}

// loadDocument compiles the document. It is called once at startup; an error is a
// mistake in openapi.yaml.
func loadDocument(baseURL string) (*document, error) {
	root, err := parseDocument(baseURL)
	if err != nil {
		return nil, fmt.Errorf("openapi.yaml: %w", err)
	}
	encoded, err := root.JSON()
	if err != nil {
		return nil, fmt.Errorf("openapi.yaml: %w", err)
	}
	c := newCompiler(root)
	doc := &document{json: encoded, gzip: compress(encoded), etag: etagOf(encoded)}
	paths := expect[*openapi.Object](c, root, "paths", "document")
	for _, path := range slices.Sorted(slices.Values(paths.Names())) {
		methods := expect[*openapi.Object](c, paths, path, "paths")
		for _, method := range slices.Sorted(slices.Values(methods.Names())) {
			op := c.operation(method, path, expect[*openapi.Object](c, methods, method, path))
			doc.operations = append(doc.operations, op)
		}
	}
	if err := c.err(); err != nil {
		return nil, fmt.Errorf("openapi.yaml: %w", err)
	}
	return doc, nil
}

// Document returns the OpenAPI document as it is served without a base URL.
func Document() (*openapi.Object, error) { return parseDocument("") }

// operation finds an operation by its method and its path template, or returns nil.
func (d *document) operation(method, path string) *operation {
	for _, op := range d.operations {
		if op.method == method && op.path == path {
			return op
		}
	}
	return nil
}

// parseDocument returns openapi.yaml, expanded for the base URL.
func parseDocument(baseURL string) (*openapi.Object, error) {
	parsed, err := readDocument()
	if err != nil {
		return nil, err
	}
	root := parsed.Copy()
	return root, expandDocument(root, baseURL)
}

// readDocument parses openapi.yaml once: that takes most of the time of a server's start.
var readDocument = sync.OnceValues(func() (*openapi.Object, error) { return openapi.Parse(openapiYAML) })

// resultPerItem makes the envelope of an operation: its body with any objects as items.
func (c *compiler) resultPerItem(op *operation, name string) {
	list := op.body.property(name)
	if list == nil || list.schema.items == nil {
		c.fail(op.id, "the body has no items %s", name)
		return
	}
	op.items, op.maxItems = list.schema.items, list.schema.maxItems
	envelope, items := *op.body, *list.schema
	items.items = &schema{types: kindObject, open: true, member: "field"}
	envelope.properties = slices.Clone(op.body.properties)
	envelope.property(name).schema = &items
	c.finish(&envelope, op.id)
	op.envelope = &envelope
}

func (c *compiler) operation(method, path string, node *openapi.Object) *operation {
	op := &operation{
		id:        c.text(node, "operationId", path),
		method:    strings.ToUpper(method),
		path:      path,
		responses: map[int]*response{},
	}
	at := op.id
	op.errors = c.texts(node, "x-errors", at)
	// Other members of a path, such as shared parameters, are not supported.
	if !slices.Contains([]string{"get", "post", "put", "patch", "delete"}, method) {
		c.fail(at, "%s is not read", method)
	}
	if security, isOpen := node.Get("security").([]any); !isOpen || len(security) > 0 {
		op.permission = c.text(node, "x-permission", at)
	}
	op.params, op.query, op.idempotency = c.parameters(node, at)
	for _, p := range op.params.properties {
		if !strings.Contains(path, "{"+p.name+"}") {
			c.fail(at, "the path has no {%s}", p.name)
		}
	}
	if strings.Count(path, "{") != len(op.params.properties) {
		c.fail(at, "a parameter of the path is not described")
	}
	if node.Has("requestBody") {
		op.body = c.content(expect[*openapi.Object](c, node, "requestBody", at), at+"/requestBody")
		op.envelope = op.body
	}
	op.maxBody = maxBody
	if node.Has("x-max-body") {
		op.maxBody = int(expect[int64](c, node, "x-max-body", at))
	}
	if node.Has("x-result-per-item") {
		c.resultPerItem(op, c.text(node, "x-result-per-item", at))
	}
	if op.idempotency != nil && (op.body == nil || op.body.property(idempotencyField) == nil) {
		c.fail(at, "the body has no field for the header %s", idempotencyHeader)
	}
	for status, answer := range expect[*openapi.Object](c, node, "responses", at).Objects() {
		op.responses[c.status(status, at)] = c.response(answer, at+"/"+status)
	}
	return op
}

// parameters builds one closed object schema for the path parameters and one for the
// query, so that they are validated like a body. The only supported header is
// Idempotency-Key.
func (c *compiler) parameters(node *openapi.Object, at string) (path, query, idempotency *schema) {
	path = &schema{types: kindObject, member: "parameter"}
	query = &schema{types: kindObject, member: "parameter"}
	for _, parameter := range c.objects(node, "parameters", at) {
		parameter = c.resolve(parameter, at)
		p := c.named(c.text(parameter, "name", at), parameter, at)
		switch place := c.text(parameter, "in", at); place {
		case "path":
			path.properties = append(path.properties, p)
		case "query":
			query.properties = append(query.properties, p)
		case "header":
			if p.name != idempotencyHeader || p.required {
				c.fail(at, "the header %s is not read", p.name)
			}
			idempotency = p.schema
		default:
			c.fail(at, "a parameter in %s is not read", place)
		}
	}
	c.finish(path, at)
	c.finish(query, at)
	return path, query, idempotency
}

// named reads a parameter or a header.
func (c *compiler) named(name string, node *openapi.Object, at string) property {
	at += "/" + name
	each := c.schema(expect[*openapi.Object](c, node, "schema", at), at)
	if each.types != kindString && each.types != kindInteger {
		c.fail(at, "only strings and integers can be read from text")
	}
	return property{name, node.Bool("required"), each}
}

func (c *compiler) response(node *openapi.Object, at string) *response {
	node = c.resolve(node, at)
	headers := &schema{types: kindObject, open: true}
	for name, header := range node.Object("headers").Objects() {
		p := c.named(name, c.resolve(header, at), at)
		headers.properties = append(headers.properties, p)
	}
	return &response{headers: headers, body: c.content(node, at)}
}

// content compiles the schema of the only media type.
func (c *compiler) content(node *openapi.Object, at string) *schema {
	content := expect[*openapi.Object](c, node, "content", at)
	media := expect[*openapi.Object](c, content, "application/json", at)
	return c.schema(expect[*openapi.Object](c, media, "schema", at), at)
}

func (c *compiler) status(code, at string) int {
	status, err := strconv.Atoi(code)
	if err != nil {
		c.fail(at, "the status %s is not a number", code)
	}
	return status
}
