package lint_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/lint"
)

func TestCommands(t *testing.T) {
	lines := func(name, text string) (list []string) {
		for _, c := range lint.Commands(name, []byte(text)) {
			list = append(list, c.String())
		}
		return list
	}
	require.Equal(t, []string{
		"a.md:2: go test -run ^$ ./a", "a.md:2: tee new.txt", "a.md:3: go tool b", "a.md:3: cat z", "a.md:4: cat x",
		"a.md:4: varve query x a = 1 | b --json", "a.md:6: curl _ -d {  }", "a.md:9: varve run A1", "a.md:10: varve serve x", "a.md:13: go vet ./...",
	}, lines("a.md", "```sh\n"+
		"$ go test -run '^$' ./a | tee \"new.txt\"  # | go comment\n"+
		"X=1 go tool b 2> y && cat z\n"+
		"cat x | varve query x 'a = 1 | b' \\\n  --json\n"+
		"K=$(ls | wc) curl $(ls | wc) -d '{\n  }' # it's\n"+
		"``` \n"+
		"    varve run A1; ls\n"+
		"    ExecStart=/usr/local/bin/varve serve x\n"+
		"go test prose\n"+
		"```\n"+
		"go vet ./...\n"+
		"```\n"+
		"```go\ngo f()\n```\n"))
	require.Equal(t, []string{"a.go:2: go run . x"}, lines("a.go", "// go test prose\n//\tgo run . x\n\tgo f()\n"))
}

// shown are what is not checked here, and why: a command, or in a document a tool.
var shown = map[string]string{
	"go get -tool example.com/tool@latest": "a placeholder",

	"go install github.com/varvedb/varve/cmd/varve@latest": "asks for what is published, which is not this tree",
	"git": "fetches what is published, which is not this tree",

	"tee": "the system's", "chmod": "the system's", "openssl": "the system's", "cd": "the shell's", "export": "the shell's",
	"docs/service.md curl":    "TestDocumentedRequests makes the requests",
	"docs/service.md grpcurl": "TestDocumentedCalls compares them with the interface",
	"docs/engines.md sqld":    "another program; the tests of store/libsql/remote start it",
	"docs/engines.md curl":    "the same: they set the mode as it does",

	"examples/arkiv-devnet/README.md curl": "of a module of its own, whose tests make the request",
}

// blocks are the kinds of fenced blocks that documents have, and what checks them.
var blocks = map[string]string{
	"":       "not code: pictures, and plans of statements, which golden files have",
	"sh":     "TestDocumentedTools, TestDocumentedGoCommands, and TestDocumentedCommands of cmd/varve",
	"go":     "TestDocumentedGo, and TestReadme of store",
	"sql":    "shows what a golden plan is of",
	"js":     "run by the tests of examples/arkiv-devnet",
	"python": "the same",
	"text":   "lines of results, which TestSet of internal/lab writes",
}

// TestDocumentedTools: every command that a document shows is checked, here or where the
// list above says, and so is every block. Make says what it would do.
func TestDocumentedTools(t *testing.T) {
	used := map[string]bool{}
	for name, text := range read(t, ".md") {
		_, kinds := lint.Fences(text)
		for _, kind := range kinds {
			if blocks[kind] == "" {
				t.Errorf("%s: nothing checks blocks of %s", name, kind)
			}
		}
		for _, c := range lint.Commands(name, text) {
			switch tool := c.Words[0]; {
			case tool == "go", tool == "varve":
			case tool == "make":
				out, err := exec.CommandContext(t.Context(), "make", append([]string{"-n", "-C", root(t)}, c.Words[1:]...)...).CombinedOutput()
				require.NoError(t, err, "%s: %s", &c, out)
			case shown[tool] == "" && shown[name+" "+tool] == "":
				t.Errorf("%s: nothing checks this", &c)
			default:
				used[tool], used[name+" "+tool] = true, true
			}
		}
	}
	for key := range shown {
		require.True(t, used[key] || strings.HasPrefix(key, "go "), "no document shows %s; take it off the list", key)
	}
}

// around is what stands around the Go that documents show: imports and the beginning of a
// function, and its end.
var around = map[string][2]string{
	"docs/events.md": {`import ("context"; "github.com/varvedb/varve/store/event")
		func _(ctx context.Context, events event.Store, course event.Tag, parseCapacity func(int, *event.Sequenced) (int, error),
			count func(int, *event.Sequenced) int, subscribed event.Event, errFull error) {
		`, "; _, _ = positions, err }"},
	"docs/service.md": {`import ("context"; "crypto/tls"; "github.com/varvedb/varve/client"; "github.com/varvedb/varve/store/event")
		func _(ctx context.Context, token string, config *tls.Config, errTaken error) error {
		`, "; _ = positions; return err }"},
}

// TestDocumentedGo compiles the Go that documents show, but for that of README.md.
func TestDocumentedGo(t *testing.T) {
	dir, virtual := t.TempDir(), filepath.Join(root(t), "internal", "documented") // which only the overlay has
	overlay := map[string]map[string]string{"Replace": {}}
	block := regexp.MustCompile("(?s)\n```go\n(.*?)\n```")
	for name, text := range read(t, ".md") {
		for i, m := range block.FindAllSubmatch(text, -1) {
			if name == "README.md" {
				continue
			}
			require.Contains(t, around, name, "say what stands around its Go")
			file := strings.ReplaceAll(strings.TrimSuffix(name, ".md"), "/", "_") + strconv.Itoa(i) + ".go"
			source := "package documented\n" + around[name][0] + string(m[1]) + around[name][1]
			require.NoError(t, os.WriteFile(filepath.Join(dir, file), []byte(source), 0o600))
			overlay["Replace"][filepath.Join(virtual, file)] = filepath.Join(dir, file)
		}
	}
	require.GreaterOrEqual(t, len(overlay["Replace"]), len(around))
	text, err := json.Marshal(overlay)
	require.NoError(t, err)
	list := filepath.Join(dir, "overlay.json")
	require.NoError(t, os.WriteFile(list, text, 0o600))
	out, err := command(t, root(t), []string{"build", "-overlay", list, "./internal/documented"})
	require.NoError(t, err, "%s", out)
}

// TestDocumentedGoCommands has the go command read every command of its own that a
// document shows, which runs nothing, and has the test programs read the flags that
// are theirs.
func TestDocumentedGoCommands(t *testing.T) {
	dir := root(t)
	theirs := map[string][][]string{} // flags of test programs, by package
	checked := 0
	for name, text := range read(t, ".md", ".go") {
		for _, c := range lint.Commands(name, text) {
			line := strings.Join(c.Words, " ")
			if c.Words[0] != "go" || shown[line] != "" {
				continue
			}
			checked++
			in := dir
			if slices.Contains(c.Words, ".") { // of a module of its own
				in = filepath.Join(dir, filepath.Dir(name))
			}
			out, err := dryRun(t, in, c.Words[1:])
			if err != nil {
				t.Errorf("%s: %v\n%s\npackages go before flags of the test program: go test -run X ./package -varve.y=z", &c, err, out)
			}
			for pkg, flags := range testFlags(out) {
				theirs[pkg] = append(theirs[pkg], append([]string{c.String()}, flags...))
			}
		}
	}
	require.NotZero(t, checked)
	require.NotEmpty(t, theirs)
	checkFlags(t, theirs)
}

// dryRun lets the go command say what it would do. A tool only has to be there.
func dryRun(t *testing.T, dir string, args []string) ([]byte, error) {
	t.Helper()
	if args[0] != "tool" {
		args = slices.Insert(slices.Clone(args), 1, "-n")
	} else if at := slices.IndexFunc(args[1:], func(s string) bool { return !strings.HasPrefix(s, "-") }) + 1; at > 0 {
		out, err := command(t, dir, args[:at])
		if err == nil && !regexp.MustCompile(`(?m)(^|/)`+args[at]+`$`).Match(out) {
			return []byte("go.mod has no tool " + args[at]), os.ErrNotExist
		}
		return nil, err
	}
	return command(t, dir, args)
}

func command(t *testing.T, dir string, args []string) ([]byte, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		lines := strings.Split(strings.TrimSpace(stderr.String()), "\n")
		return []byte(strings.Join(lines[max(0, len(lines)-3):], "\n")), err
	}
	return append(out, stderr.Bytes()...), nil // go test -n writes to stderr
}

var testProgram = regexp.MustCompile(`(?m)^cd (\S+)\n(?:.*\n)?\$WORK/\S+\.test (.*)$`)

// testFlags returns the flags that each package's test program would get and that
// are not go test's.
func testFlags(out []byte) map[string][]string {
	found := map[string][]string{}
	for _, m := range testProgram.FindAllStringSubmatch(string(out), -1) {
		flags := slices.DeleteFunc(strings.Fields(m[2]), func(s string) bool { return strings.HasPrefix(s, "-test.") })
		if len(flags) > 0 {
			found[m[1]] = flags
		}
	}
	return found
}

// checkFlags builds the test programs and lets them read their flags.
func checkFlags(t *testing.T, theirs map[string][][]string) {
	t.Helper()
	for pkg, list := range theirs {
		program := filepath.Join(t.TempDir(), "test") // of a name of its own: two packages may end in sqlite
		out, err := command(t, root(t), []string{"test", "-vet=off", "-c", "-o", program, pkg})
		require.NoError(t, err, "%s", out)
		for _, flags := range list {
			cmd := exec.CommandContext(t.Context(), program, append(flags[1:], "-test.list=^$")...)
			out, err := cmd.CombinedOutput()
			first, _, _ := strings.Cut(string(out), "\n")
			if err != nil {
				t.Errorf("%s: the tests of %s say: %s", flags[0], pkg, first)
			}
		}
	}
}
