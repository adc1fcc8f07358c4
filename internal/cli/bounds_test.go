package cli

import (
	"bytes"
	"reflect"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestBounds: every number on the command line has bounds or declares that it
// may be any, and the error of a number outside names them.
func TestBounds(t *testing.T) {
	var cmds commands
	parser, err := newParser(&cmds)
	require.NoError(t, err)
	require.NoError(t, kong.Visit(parser.Model, func(node kong.Visitable, next kong.Next) error {
		var value *kong.Value
		switch n := node.(type) {
		case *kong.Flag:
			value = n.Value
		case *kong.Value:
			value = n
		}
		if value != nil && isNumber(value.Target.Type()) {
			bounded := (value.Tag.Has("min") || value.Tag.Has("above")) && value.Tag.Has("max")
			assert.True(t, bounded || value.Tag.Has("any"), "%s has no bounds", value.Summary())
		}
		return next(nil)
	}))
	for _, c := range []struct {
		args []string
		says string
	}{
		// Without its bound, a command that measures would be refused by its
		// unknown experiment, or would only list experiments.
		{[]string{"run", "C1", "--only=client=10", "--list"}, "C1: --only leaves nothing of what is named like engine=sqlite/"},
		{[]string{"bench", "diff", "--alpha=0", "old.txt", "new.txt"}, "--alpha: want above 0 to 0.5, got 0"},
		{[]string{"run", "unknown", "--scale=0"}, "--scale: want above 0 to 100"},
		{[]string{"run", "unknown", "--scale=NaN"}, "--scale"},
		{[]string{"import", "x.tar", "sqlite:x.db", "--batch=0"}, "--batch: want from 1 to 1000000, got 0"},
		{[]string{"import", "x.tar", "y.tar", "--factor=-1"}, "--factor"},
		{[]string{"events", "import", "sqlite:x.db", "--batch=0"}, "--batch"},
		{[]string{"query", "sqlite:x.db", "*", "--limit=-1"}, "--limit"},
		{[]string{"health", "--timeout=0s"}, "--timeout: want from 1ms to 1h, got 0s"},
	} {
		var out, errs bytes.Buffer
		require.Equal(t, ExitUsage, Run(t.Context(), c.args, &out, &errs), "%v: %s", c.args, errs.String())
		require.Contains(t, errs.String(), c.says)
	}
}

func isNumber(of reflect.Type) bool {
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
		of = of.Elem()
	}
	_, ok := number(reflect.Zero(of))
	return ok || of == reflect.TypeFor[time.Duration]()
}
