package main

import (
	"bufio"
	"fmt"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/imports"

	"purser/docs"
)

// blockEnd ends a block, and its output; no answer holds it.
const blockEnd = '\x1e'

// session runs the blocks of guides one after the other. What one defines is known to the
// next.
type session struct {
	input  io.WriteCloser
	output *bufio.Reader
	errors *safeBuffer
}

// startSession starts a program that reads blocks and writes their outputs, each followed by
// blockEnd. It ends with the test.
func startSession(t *testing.T, environ []string, folder, program string, args ...string) *session {
	t.Helper()
	command := exec.CommandContext(t.Context(), program, args...)
	command.Dir = folder
	command.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "PYTHONDONTWRITEBYTECODE=1"}, environ...)
	s := &session{errors: &safeBuffer{}}
	command.Stderr = s.errors
	var err error
	if s.input, err = command.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	s.output = bufio.NewReader(output)
	if err := command.Start(); err != nil {
		t.Fatalf("%s does not start, and the guides cannot be checked without it (make test installs it): %v", program, err)
	}
	t.Cleanup(func() {
		s.input.Close()
		if err := command.Wait(); err != nil && t.Context().Err() == nil {
			t.Errorf("%s: %v\n%s", program, err, s.errors.String())
		}
	})
	return s
}

// run gives the output of a block.
func (s *session) run(t *testing.T, block string) string {
	t.Helper()
	if _, err := io.WriteString(s.input, block); err != nil {
		t.Fatalf("%v\n%s\n%s", err, block, s.errors.String())
	}
	output, err := s.output.ReadString(blockEnd)
	if err != nil {
		t.Fatalf("%v\n%s\n%s%s", err, block, output, s.errors.String())
	}
	return strings.TrimSuffix(output, string(blockEnd))
}

// shell reads a block as it is typed.
func newShell(t *testing.T, environ []string) *session {
	t.Helper()
	return startSession(t, environ, t.TempDir(), "sh", "-eu")
}

func shellInput(block string) string { return block + "\nprintf '\\036'\n" }

// pythonDriver runs each block in one namespace. A declined request prints the answer, as
// curl does.
const pythonDriver = `
import json, sys
import purser

def show(*values):
    sys.stdout.write(" ".join(json.dumps(v) if isinstance(v, (dict, list)) else str(v) for v in values) + "\n")

def blocks():
    block = ""
    while character := sys.stdin.read(1):
        if character == "\x1e":
            yield block
            block = ""
        else:
            block += character

names = {"purser": purser, "print": show}
for block in blocks():
    try:
        exec(compile(block, "block", "exec"), names)
    except purser.PurserError as declined:
        show(declined.answer)
    sys.stdout.write("\x1e")
    sys.stdout.flush()
`

func newPython(t *testing.T, environ []string) *session {
	t.Helper()
	folder := t.TempDir()
	writeClient(t, "python", folder, "purser.py")
	writeFile(t, filepath.Join(folder, "driver.py"), pythonDriver)
	return startSession(t, environ, folder, "python3", "driver.py")
}

// typescriptDriver runs each block as a module beside the client. A declined request prints
// the answer, as curl does.
const typescriptDriver = `
import { writeFileSync } from "node:fs";
import * as purser from "./purser.mts";

console.log = (...values: unknown[]) => {
  process.stdout.write(values.map((v) => (typeof v === "object" ? JSON.stringify(v) : String(v))).join(" ") + "\n");
};

let block = "";
let number = 0;
process.stdin.setEncoding("utf8");
for await (const text of process.stdin) {
  for (const character of text) {
    if (character !== "\x1e") {
      block += character;
      continue;
    }
    const file = "./block-" + number++ + ".mts";
    writeFileSync(file, 'import * as purser from "./purser.mts";\n' + block);
    block = "";
    try {
      await import(file);
    } catch (declined) {
      if (!(declined instanceof purser.PurserError)) throw declined;
      console.log(declined.answer);
    }
    process.stdout.write("\x1e");
  }
}
`

func newTypeScript(t *testing.T, environ []string) *session {
	t.Helper()
	folder := t.TempDir()
	writeClient(t, "typescript", folder, "purser.mts")
	writeFile(t, filepath.Join(folder, "driver.mts"), typescriptDriver)
	return startSession(t, environ, folder, "node", "--import", tsx(t), "driver.mts")
}

// tsx is what node runs TypeScript with. Only make sdks installs it.
func tsx(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs("../../docs/node/node_modules/tsx/dist/loader.mjs")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func writeClient(t *testing.T, language, folder, name string) {
	t.Helper()
	client, err := docs.FindLanguage(language).Client()
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(folder, name), client)
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// goBlocks are all that the guides have, each once.
func goBlocks(guides []docs.Guide) []string {
	var blocks []string
	for _, guide := range guides {
		for _, block := range guide.Body {
			if block.Code == nil {
				continue
			}
			variant := block.Code.In(docs.FindLanguage("go"))
			if variant.Language.Key == "go" && !slices.Contains(blocks, variant.Text) {
				blocks = append(blocks, variant.Text)
			}
		}
	}
	return blocks
}

// buildGo builds one program of all blocks, and gives its path: declarations as they are,
// statements as a function each, which are called by number.
func buildGo(t *testing.T, blocks []string) string {
	t.Helper()
	folder := t.TempDir()
	writeFile(t, filepath.Join(folder, "go.mod"), "module guides\n\ngo 1.24\n")
	writeClient(t, "go", folder, "purser/purser.go")
	var program, calls strings.Builder
	program.WriteString("package main\n\nimport \"guides/purser\"\n\n")
	for i, block := range blocks {
		if _, err := parser.ParseFile(token.NewFileSet(), "", "package x\n"+block, 0); err == nil {
			program.WriteString(block + "\n\n")
			continue
		}
		fmt.Fprintf(&program, "func block%d(ctx context.Context) error {\n%s\nreturn nil\n}\n\n", i, block)
		fmt.Fprintf(&calls, "case %d: err = block%d(context.Background())\n", i, i)
	}
	fmt.Fprintf(&program, `func main() {
	for {
		var number int
		if _, err := fmt.Scanln(&number); err != nil {
			return
		}
		var err error
		switch number {
		%s
		}
		var declined *purser.Error
		if errors.As(err, &declined) {
			fmt.Println(string(declined.Body))
		} else if err != nil {
			log.Fatal(err)
		}
		fmt.Print("\x1e")
	}
}
`, calls.String())
	source, err := imports.Process("main.go", []byte(program.String()), nil)
	if err != nil {
		t.Fatalf("%v\n%s", err, program.String())
	}
	writeFile(t, filepath.Join(folder, "main.go"), string(source))
	build := exec.CommandContext(t.Context(), "go", "build", "-o", "guides", ".")
	build.Dir = folder
	build.Env = append(os.Environ(), "GOWORK=off")
	if printed, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, printed, source)
	}
	return filepath.Join(folder, "guides")
}
