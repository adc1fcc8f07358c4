package cli_test

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/cli"
	"github.com/varvedb/varve/internal/eventjson"
)

// TestEventsStrict: nothing of a line is dropped or changed in silence, whichever command
// reads it; what comes before the line is stored.
func TestEventsStrict(t *testing.T) {
	for wrong, want := range map[string]string{
		`{"type":"A"} {"type":"B"}`:                    "line 2, column 14: invalid operation: something follows",
		`{"type":"A"}]`:                                "line 2, column 13: invalid operation: something follows",
		"{\"type\":\"A\",\"tags\":[[\"k\",\"\xff\"]]}": "line 2, column 27: invalid operation: not UTF-8",
		`{"type":"A","tags":[["k","\udc00"]]}`:         "line 2, column 27: invalid operation: half of a surrogate pair",
		"\ufeff{\"type\":\"A\"}":                       "line 2, column 1: invalid operation: a byte order mark",
		`{"type":"A","type":"B"}`:                      "line 2, column 13: invalid operation: the name",
	} {
		dir := t.TempDir()
		url := "sqlite:" + filepath.Join(dir, "e.db")
		lines := writeLines(t, dir, "lines", `{"type":"First"}`, wrong, `{"type":"Last"}`)
		for _, command := range []string{"append", "import"} {
			require.Contains(t, refused(t, cli.ExitError, "events", command, url+command, lines), want)
			require.Contains(t, must(t, "events", "stats", url+command), `"events": 1,`)
		}
	}
}

// TestEventsLongLine: a small file of one endless line takes no more memory than a line may
// have.
func TestEventsLongLine(t *testing.T) {
	dir := t.TempDir()
	var packed bytes.Buffer
	to, err := zstd.NewWriter(&packed)
	require.NoError(t, err)
	part := bytes.Repeat([]byte("x"), 1<<20)
	for n := 0; n < 16*eventjson.MaxLine; n += len(part) {
		_, err := to.Write(part)
		require.NoError(t, err)
	}
	require.NoError(t, to.Close())
	require.Less(t, packed.Len(), 1<<20)
	file := filepath.Join(dir, "long.jsonl.zst")
	require.NoError(t, os.WriteFile(file, packed.Bytes(), 0o600))
	for _, command := range []string{"append", "import"} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		require.Contains(t, refused(t, cli.ExitError, "events", command, "sqlite:"+filepath.Join(dir, command), file), "line 1: invalid operation: the line is longer than")
		runtime.ReadMemStats(&after)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(8*eventjson.MaxLine), "of %d bytes that the line has", 16*eventjson.MaxLine)
	}
}

// TestEventsComma: a flag is one value, whatever it has in it.
func TestEventsComma(t *testing.T) {
	dir := t.TempDir()
	url := "sqlite:" + filepath.Join(dir, "e.db")
	lines := writeLines(t, dir, "lines", `{"type":"A,B","tags":[["list","a,b:c"]],"data":1}`, `{"type":"A","tags":[["list","a"],["b","c"]],"data":2}`, `{"type":"B","data":3}`)
	must(t, "events", "append", url, lines)
	for _, filter := range []string{"--tag=list:a,b:c", "--type=A,B"} {
		found := must(t, "events", "read", url, filter)
		require.Contains(t, found, `"data":1}`, filter)
		require.NotContains(t, found, `"data":2}`, filter)
		require.NotContains(t, found, `"data":3}`, filter)
	}
	one := writeLines(t, dir, "one", `{"type":"C"}`)
	for _, unless := range []string{"--unless-tag=list:a,b:c", "--unless-type=A,B"} {
		require.Contains(t, refused(t, cli.ExitError, "events", "append", url, one, unless), "event 1")
		must(t, "events", "append", url, one, unless, "--after=1")
	}
}
