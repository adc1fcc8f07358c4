package cli

import (
	"io"
	"os"
	"reflect"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/lint"
)

// TestListFlags: a repeatable flag takes one value each time, commas and all. A
// flag with several values at once is a list of names or origins, which have no
// commas.
func TestListFlags(t *testing.T) {
	names := map[string]bool{"engines": true, "layouts": true, "trials": true, "origin": true, "arkiv-origin": true}
	parser, err := newParser(new(commands), kong.Writers(io.Discard, io.Discard))
	require.NoError(t, err)
	lists := 0
	var visit func(node *kong.Node)
	visit = func(node *kong.Node) {
		for _, f := range node.Flags {
			if f.Target.Type() != reflect.TypeFor[[]string]() {
				continue
			}
			lists++
			require.Equal(t, names[f.Name], f.Tag.Sep >= 0, "%s --%s: one flag is one value: sep:\"none\"", node.FullPath(), f.Name)
		}
		for _, child := range node.Children {
			visit(child)
		}
	}
	visit(parser.Model.Node)
	require.Greater(t, lists, 10)
}

// TestExamples: every command has an example, and each is one that the parser takes.
func TestExamples(t *testing.T) {
	parser, err := newParser(new(commands), kong.Writers(io.Discard, io.Discard))
	require.NoError(t, err)
	for _, command := range parser.Model.Leaves(true) {
		require.Contains(t, command.Detail, "varve", command.FullPath())
	}
	t.Chdir(t.TempDir())
	require.NoError(t, os.Mkdir("backup-1", 0o700)) // what must be there
	require.NoError(t, os.WriteFile("keys", nil, 0o600))
	for _, command := range lint.Commands("examples.md", []byte("```sh"+examples+"\n```\n")) {
		parser, err := newParser(new(commands), kong.Writers(io.Discard, io.Discard))
		require.NoError(t, err)
		_, err = parser.Parse(command.Words[1:])
		require.NoError(t, err, &command)
	}
}
