package docs

import (
	"encoding/json"
	"fmt"
	"go/format"
	"regexp"
	"strings"

	"purser/api/openapi"
)

// apiCall is a request to the API as an example shows it.
type apiCall struct {
	method string
	path   string          // from /v1 on, with its query
	body   *openapi.Object // nil without one
}

// curlCommand matches one command of the form that the guides use. Anything else, such as a
// loop or a shell variable in the path, is for the shell only.
var curlCommand = regexp.MustCompile(`^curl( -X ([A-Z]+))? "\$PURSER_URL(/v1/[^"$]*)"((?: -H "[^"]*")*)(?: --json '([^']*)')?$`)

const bearerHeader = ` -H "Authorization: Bearer $PURSER_KEY"`

// parseCurl reads a block of curl commands, or reports that there is something else in it.
func parseCurl(block string) (calls []apiCall, ok bool) {
	joined := strings.ReplaceAll(block, "\\\n", " ")
	for _, command := range splitCommands(joined) {
		head, body, hasBody := strings.Cut(command, "--json '")
		command = strings.Join(strings.Fields(head), " ")
		if hasBody {
			command += " --json '" + body
		}
		found := curlCommand.FindStringSubmatch(command)
		if found == nil || found[4] != bearerHeader {
			return nil, false
		}
		call := apiCall{method: found[2], path: found[3]}
		if found[5] != "" {
			body, err := openapi.Parse([]byte(found[5]))
			if err != nil || !json.Valid([]byte(found[5])) {
				return nil, false
			}
			call.body = body
		}
		if call.method == "" {
			call.method = "GET"
			if call.body != nil {
				call.method = "POST"
			}
		}
		calls = append(calls, call)
	}
	return calls, len(calls) > 0
}

// splitCommands splits at line ends outside of single quotes.
func splitCommands(block string) []string {
	var commands []string
	var current strings.Builder
	quoted := false
	for _, r := range block {
		if r == '\'' {
			quoted = !quoted
		}
		if r == '\n' && !quoted {
			commands = append(commands, current.String())
			current.Reset()
			continue
		}
		current.WriteRune(r)
	}
	commands = append(commands, current.String())
	var written []string
	for _, command := range commands {
		if command = strings.TrimSpace(command); command != "" {
			written = append(written, command)
		}
	}
	return written
}

// translate writes calls with the client of a language, which the page about clients shows.
func translate(language string, calls []apiCall) (string, error) {
	names := resultNames(calls)
	var out strings.Builder
	for i, call := range calls {
		if i > 0 {
			out.WriteString("\n")
		}
		function, path, noBody := strings.ToLower(call.method), fmt.Sprintf("%q", call.path), ""
		if call.method == "PUT" || call.method == "DELETE" { // the clients have no function for them
			function, path = "call", fmt.Sprintf("%q, %q", call.method, call.path)
			if call.body == nil {
				noBody = ", nil"
			}
		}
		switch language {
		case "python":
			fmt.Fprintf(&out, "%s = purser.%s(%s%s)\nprint(%[1]s)\n", names[i], function, path, argument(pythonLiterals, call.body))
		case "typescript":
			fmt.Fprintf(&out, "const %s = await purser.%s(%s%s);\nconsole.log(%[1]s);\n", names[i], function, path, argument(typescriptLiterals, call.body))
		case "go":
			fmt.Fprintf(&out, "%s, err := purser.%s(ctx, %s%s%s)\nif err != nil {\n\treturn err\n}\nfmt.Println(string(%[1]s))\n",
				names[i], strings.ToUpper(function[:1])+function[1:], path, argument(goLiterals, call.body), noBody)
		default:
			return "", fmt.Errorf("docs: no translation into %s", language)
		}
	}
	text := out.String()
	if language == "go" {
		formatted, err := format.Source([]byte(text))
		if err != nil {
			return "", fmt.Errorf("docs: formatting Go: %w", err)
		}
		text = string(formatted)
	}
	return strings.TrimSuffix(text, "\n"), nil
}

// resultNames names what each call returns after what it reads or creates.
func resultNames(calls []apiCall) []string {
	var names []string
	seen := map[string]int{}
	for _, call := range calls {
		path, _, _ := strings.Cut(call.path, "?")
		parts := strings.Split(strings.TrimPrefix(path, "/v1/"), "/")
		name := parts[0]
		if len(parts) == 3 {
			name = parts[2]
		}
		if call.method != "GET" || len(parts) == 2 {
			name = strings.TrimSuffix(name, "s")
		}
		if at := strings.LastIndexByte(name, '-'); at >= 0 { // subscription-checkout
			name = name[at+1:]
		}
		if reserved[name] {
			name = "wallet" + strings.ToUpper(name[:1]) + name[1:]
		}
		seen[name]++
		if seen[name] > 1 {
			name += fmt.Sprint(seen[name])
		}
		names = append(names, name)
	}
	return names
}

// reserved are words of the languages that a path can end with.
var reserved = map[string]bool{"export": true, "import": true}

var (
	pythonLiterals     = literals{object: [2]string{"{", "}"}, list: [2]string{"[", "]"}, key: scalar, yes: "True", no: "False", absent: "None", comma: ",", indent: "    ", columns: 84}
	typescriptLiterals = literals{object: [2]string{"{", "}"}, list: [2]string{"[", "]"}, key: bareKey, yes: "true", no: "false", absent: "null", comma: ",", space: " ", indent: "    ", columns: 84}
	goLiterals         = literals{object: [2]string{"map[string]any{", "}"}, list: [2]string{"[]any{", "}"}, key: scalar, yes: "true", no: "false", absent: "nil", comma: ",", indent: "    ", columns: 84}
)

var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func bareKey(key any) string {
	if name, _ := key.(string); identifier.MatchString(name) {
		return name
	}
	return scalar(key)
}

// argumentColumn is where the argument of a typical call begins.
const argumentColumn = 32

// argument is a body as the second argument of a call.
func argument(l literals, body *openapi.Object) string {
	if body == nil {
		return ""
	}
	return ", " + l.write(body, "", argumentColumn)
}
