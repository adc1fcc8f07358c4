package cli_test

import (
	"context"
	"encoding/json"
	"io"
	"io/fs"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/docs"
	"github.com/varvedb/varve/internal/cli"
)

func TestVersion(t *testing.T) {
	text := must(t, "version")
	require.Regexp(t, `^varve \S+ .*`+runtime.Version(), text)
	var v struct {
		Version, Go string
		Engines     []struct{ Name, Version string }
	}
	require.NoError(t, json.Unmarshal([]byte(must(t, "version", "--json")), &v))
	require.Equal(t, runtime.Version(), v.Go)
	require.NotEmpty(t, v.Version)
	for _, e := range v.Engines {
		require.Contains(t, text, e.Name)
	}
}

// TestUsage: a usage error names its explanation.
func TestUsage(t *testing.T) {
	for wrong, command := range map[string]string{"--none": "varve --help", "query x --none": "varve query --help", "events": "varve events --help", "events read": "varve events read --help"} {
		var errs strings.Builder
		require.Equal(t, cli.ExitUsage, cli.Run(context.Background(), strings.Fields(wrong), io.Discard, &errs))
		require.Contains(t, errs.String(), "\nRun "+command+" for", wrong)
	}
}

// TestHelp: every document is a topic, and is printed whole, but for comments.
func TestHelp(t *testing.T) {
	list := must(t, "help")
	names, err := fs.Glob(docs.FS, "*.md")
	require.NoError(t, err)
	require.NotEmpty(t, names)
	for _, name := range names {
		want, err := fs.ReadFile(docs.FS, name)
		require.NoError(t, err)
		topic := strings.TrimSuffix(name, ".md")
		require.Contains(t, list, "  "+topic+" ")
		var plain string
		for part := range strings.SplitSeq("-->"+string(want), "<!--") {
			_, rest, _ := strings.Cut(part, "-->")
			plain += rest
		}
		require.Equal(t, strings.Fields(plain), strings.Fields(must(t, "help", topic)))
	}
	for _, topic := range []string{"none", "../README", "adr", ""} {
		var errs strings.Builder
		code := cli.Run(context.Background(), []string{"help", topic}, io.Discard, &errs)
		require.Equal(t, topic != "", code == cli.ExitUsage, errs.String())
	}
}

// TestCompletion: a shell's completion gets commands and flags, and no command
// runs.
func TestCompletion(t *testing.T) {
	for line, want := range map[string]string{
		"varve ver":              "version\n",
		"varve events a":         "append\n",
		"varve answer --no-such": "",
	} {
		t.Setenv("COMP_LINE", line)
		require.ElementsMatch(t, strings.Fields(want), strings.Fields(must(t)), line)
	}
	t.Setenv("COMP_LINE", "")
	for _, shell := range []string{"bash", "zsh", "fish"} {
		require.Contains(t, must(t, "completion", "-c", shell), "complete ")
	}
}
