package lint_test

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
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
		"a.md:4: varve query x a = 1 | b --json", "a.md:6: curl _ -d {\n  }", "a.md:9: varve run A1", "a.md:10: varve serve x", "a.md:13: go vet ./...",
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

// shown has the unchecked commands, or in a document tools, with the reasons.
var shown = map[string]string{
	"go get -tool example.com/tool@latest": "a placeholder",

	"go install github.com/varvedb/varve/cmd/varve@latest": "asks for what is published, which is not this tree",
	"git": "fetches what is published, which is not this tree",

	"tee": "the system's", "chmod": "the system's", "cd": "the shell's", "export": "the shell's",
	"head": "TestDocumentedCommands makes files with it", "base64": "the same", "echo": "the same", "python3": "the same",
	"docs/service.md curl":    "TestDocumentedRequests makes the requests",
	"docs/service.md grpcurl": "TestGrpcurl runs them",
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
	"json":   "a line of blocks, which TestDocumentedLine of cmd/varve imports",
	"js":     "run by the tests of examples/arkiv-devnet",
	"python": "the same",
	"text":   "lines of results, which TestSet of internal/lab writes",
}

// TestDocumentedTools: every command that a document shows is checked, here or
// in the test that the list above names, and so is every block. Make prints its
// commands without running them.
func TestDocumentedTools(t *testing.T) {
	used := map[string]bool{}
	for name, text := range read(t, ".md") {
		_, kinds := lint.Fences([]byte(text))
		for _, kind := range kinds {
			if blocks[kind] == "" {
				t.Errorf("%s: nothing checks blocks of %s", name, kind)
			}
		}
		for _, c := range lint.Commands(name, []byte(text)) {
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
		for i, m := range block.FindAllStringSubmatch(text, -1) {
			if name == "README.md" {
				continue
			}
			require.Contains(t, around, name, "say what stands around its Go")
			file := strings.ReplaceAll(strings.TrimSuffix(name, ".md"), "/", "_") + strconv.Itoa(i) + ".go"
			source := "package documented\n" + around[name][0] + m[1] + around[name][1]
			require.NoError(t, os.WriteFile(filepath.Join(dir, file), []byte(source), 0o600))
			overlay["Replace"][filepath.Join(virtual, file)] = filepath.Join(dir, file)
		}
	}
	require.GreaterOrEqual(t, len(overlay["Replace"]), len(around))
	text, err := json.Marshal(overlay)
	require.NoError(t, err)
	list := filepath.Join(dir, "overlay.json")
	require.NoError(t, os.WriteFile(list, text, 0o600))
	build := exec.CommandContext(t.Context(), "go", "build", "-overlay", list, "./internal/documented")
	build.Dir = root(t)
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// TestDocumentedGoCommands: packages, tests, flags of test programs and tools that shown commands of go name are there.
func TestDocumentedGoCommands(t *testing.T) {
	dir, code, checked := root(t), read(t, ".go"), 0
	all := strings.Join(slices.Collect(maps.Values(code)), "\n")
	tools := strings.Join(slices.Collect(maps.Values(read(t, "go.mod"))), "\n")
	tree, err := lint.NewTree(nil, code)
	require.NoError(t, err)
	for name, text := range read(t, ".md", ".go") {
		for _, c := range lint.Commands(name, []byte(text)) {
			if c.Words[0] != "go" || shown[strings.Join(c.Words, " ")] != "" {
				continue
			}
			checked++
			flagged := "" // the first flag that is not go's
			for i, word := range c.Words {
				flag, _, _ := strings.Cut(word, "=")
				switch {
				case strings.HasPrefix(word, "./"), word == ".":
					in := dir
					if at := slices.Index(c.Words, "-C"); at > 0 {
						in = filepath.Join(dir, c.Words[at+1])
					}
					if word == "." { // of a separate module
						in = filepath.Join(dir, filepath.Dir(name))
					}
					assert.DirExists(t, filepath.Join(in, strings.TrimSuffix(word, "...")), &c)
					assert.Empty(t, flagged, "%s: packages go before flags of the test program", &c)
				case strings.HasPrefix(flag, "-varve."):
					flagged = flag
					assert.Contains(t, all, `"`+flag[1:]+`"`, &c)
				case flag == "-run", flag == "-bench":
					pattern := strings.TrimPrefix(word, flag+"=")
					if pattern == flag {
						pattern = c.Words[i+1]
					}
					assert.True(t, pattern == "^$" || tree.Matches(pattern), "%s: no test matches %s", &c, pattern)
				}
			}
			if c.Words[1] == "tool" {
				tool := slices.IndexFunc(c.Words[2:], func(s string) bool { return s[0] != '-' }) + 2
				assert.Regexp(t, `(?m)^\s.*/`+c.Words[tool]+`$`, tools, &c)
			}
		}
	}
	require.NotZero(t, checked)
}
