package cli

import (
	"io"
	"reflect"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"
)

// TestListFlags: a flag that may be given again takes one value each time, commas and all.
// Those that take several at once are lists of names or origins, in which there is no comma.
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
