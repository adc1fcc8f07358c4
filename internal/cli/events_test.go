package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/cli"

	_ "github.com/varvedb/varve/store/sqlite"
)

// varve runs a command line and returns its exit code and output.
func varve(args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = cli.Run(context.Background(), args, &out, &errs)
	return code, out.String(), errs.String()
}

func TestEvents(t *testing.T) {
	dir := t.TempDir()
	url, lines := "sqlite:"+filepath.Join(dir, "e.db"), filepath.Join(dir, "lines")
	require.NoError(t, os.WriteFile(lines, []byte(`{"type":"CourseDefined","tags":[["course","c1"]],"data":{"capacity":5}}

{"type":"Subscribed","tags":[["course","c1"],["student","s:1"]],"data_base64":"AP8=","id":"00000000-0000-0000-0000-000000000007"}
{"type":"Subscribed","tags":[["course","c2"]],"metadata":"x"}`), 0o600))

	require.Equal(t, "{\"position\":1}\n{\"position\":2}\n{\"position\":3}\n", must(t, "events", "append", "--batch=2", url, lines))
	require.Contains(t, refused(t, cli.ExitError, "events", "append", "--unless-type=CourseDefined", "--unless-tag=course:c1", url, lines), "conflict: event 1")
	out := must(t, "events", "read", "--type=Subscribed", "--tag=student:s:1", url)
	out = regexp.MustCompile(`"time":"[^"]*"`).ReplaceAllString(out, `"time":"T"`)
	require.Equal(t, `{"position":2,"time":"T","id":"00000000-0000-0000-0000-000000000007","type":"Subscribed",`+
		`"tags":[["course","c1"],["student","s:1"]],"data_base64":"AP8="}`+"\n", out)
	var stats map[string]any
	require.NoError(t, json.Unmarshal([]byte(must(t, "events", "stats", url)), &stats))
	require.EqualValues(t, 3, stats["events"])
	require.Contains(t, refused(t, cli.ExitUsage, "events", "read", "--tag=broken", url), "want key:value")
}

// must runs a command line that succeeds and returns its output.
func must(t *testing.T, args ...string) string {
	t.Helper()
	code, out, errs := varve(args...)
	require.Equal(t, cli.ExitOK, code, errs)
	return out
}

// refused runs a command line that fails and returns its error output.
func refused(t *testing.T, want int, args ...string) string {
	t.Helper()
	code, _, errs := varve(args...)
	require.Equal(t, want, code, errs)
	return errs
}

func writeLines(t *testing.T, dir, name string, lines ...string) (path string) {
	t.Helper()
	path = filepath.Join(dir, name)
	require.NoError(t, os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600))
	return path
}

// TestEventsOr: items are alternatives, in queries and in conditions.
func TestEventsOr(t *testing.T) {
	dir := t.TempDir()
	url := "sqlite:" + filepath.Join(dir, "e.db")
	lines := writeLines(t, dir, "lines", `{"type":"A","tags":[["x","1"]]}`, `{"type":"B","tags":[["x","1"],["name","a&b"]]}`, `{"type":"C"}`)
	must(t, "events", "append", url, lines)
	read := func(args ...string) string {
		types := ""
		for _, line := range strings.Split(must(t, append([]string{"events", "read", url}, args...)...), "\n") {
			if _, rest, ok := strings.Cut(line, `"type":"`); ok {
				types += rest[:1]
			}
		}
		return types
	}
	require.Equal(t, "ABC", read())
	require.Equal(t, "AC", read("--type=A", "--or=type=C"))
	require.Equal(t, "AB", read("--or=type=A&type=B&tag=x:1", "--or=type=C&tag=x:1"))
	require.Equal(t, "B", read("--or=tag=name:a%26b&tag=x:1"))
	require.Equal(t, "AB", read("--tag=x:1"))
	for _, wrong := range []string{"--or=types=A", "--or=", "--or=tag=x", "--or=type=%zz"} {
		refused(t, cli.ExitUsage, "events", "read", url, wrong)
	}
	one := writeLines(t, dir, "one", `{"type":"D"}`)
	require.Contains(t, refused(t, cli.ExitError, "events", "append", url, one, "--unless-type=None", "--unless-or=tag=x:1&type=B"), "event 2")
	must(t, "events", "append", url, one, "--unless-type=None", "--unless-or=tag=x:1&type=B", "--after=2")
}

// TestEventsTimes: a time that a line gives is kept, unless it would fall.
func TestEventsTimes(t *testing.T) {
	dir := t.TempDir()
	url := "sqlite:" + filepath.Join(dir, "e.db")
	old := writeLines(t, dir, "old", `{"type":"A","time":"2020-01-01T01:00:00.5+01:00"}`, `{"position":7,"type":"A","time":"2020-01-02T00:00:00Z"}`)
	require.Equal(t, "{\"position\":1}\n{\"position\":2}\n", must(t, "events", "append", url, old))
	require.Equal(t, `{"position":1,"time":"2020-01-01T00:00:00.500000Z","type":"A"}`+"\n", must(t, "events", "read", "--limit=1", url))
	said := refused(t, cli.ExitError, "events", "append", url, old)
	require.Contains(t, said, "events 1 to 1 of the file")
	require.Contains(t, said, "behind one of 2020-01-02")
	require.Contains(t, said, "--now")
	require.Contains(t, refused(t, cli.ExitUsage, "events", "append", "--unless-type=B", url, old), "--now")
	require.Equal(t, "{\"position\":3}\n{\"position\":4}\n", must(t, "events", "append", "--now", "--unless-type=B", url, old))
}

// TestEventsExport: a store that is imported from what another one exports has the same
// events, and gives the same file; an import can be repeated.
func TestEventsExport(t *testing.T) {
	dir := t.TempDir()
	url := func(name string) string { return "sqlite:" + filepath.Join(dir, name) }
	lines := writeLines(t, dir, "lines", `{"type":"A","tags":[["k","v"]],"data":{"a":1},"time":"2020-01-01T00:00:00Z"}`,
		`{"type":"B","data_base64":"eyJhIjogMX0=","metadata_base64":"/w==","id":"00000000-0000-0000-0000-000000000007"}`, `{"type":"C"}`)
	must(t, "events", "append", url("a.db"), lines)
	all := must(t, "events", "export", url("a.db"))
	require.Contains(t, all, `"data_base64":"eyJhIjogMX0="`, "spaces are kept")

	plain, packed := filepath.Join(dir, "all.jsonl"), filepath.Join(dir, "all.jsonl.zst")
	for i, file := range []string{plain, packed} {
		must(t, "events", "export", url("a.db"), file)
		require.NoFileExists(t, file+".partial")
		to := url([]string{"b.db", "c.db"}[i])
		require.JSONEq(t, `{"events":3,"skipped":0,"head":3}`, must(t, "events", "import", "--batch=2", to, file))
		require.Equal(t, all, must(t, "events", "export", to))
		require.JSONEq(t, `{"events":0,"skipped":3,"head":3}`, must(t, "events", "import", to, file))
	}
	content, err := os.ReadFile(plain)
	require.NoError(t, err)
	require.Equal(t, all, string(content))
	content, err = os.ReadFile(packed)
	require.NoError(t, err)
	require.NotEqual(t, all, string(content))

	rest := writeLines(t, dir, "rest", strings.SplitAfterN(all, "\n", 2)[1])
	require.Contains(t, refused(t, cli.ExitError, "events", "import", url("d.db"), rest), "event 2 comes where the store goes on with 1")
	require.JSONEq(t, `{"events":2,"skipped":0,"head":2}`, must(t, "events", "import", "--renumber", url("d.db"), rest))
	require.Contains(t, refused(t, cli.ExitError, "events", "import", url("d.db"), plain), "the store has another event 2")
	require.Equal(t, must(t, "events", "export", "--from=3", url("a.db")), strings.SplitAfterN(all, "\n", 3)[2])
}

func TestEventsCheckpoint(t *testing.T) {
	dir := t.TempDir()
	url := "sqlite:" + filepath.Join(dir, "e.db")
	must(t, "events", "append", url, writeLines(t, dir, "lines", `{"type":"A"}`, `{"type":"A"}`))
	require.Empty(t, must(t, "events", "checkpoint", "list", url))
	must(t, "events", "checkpoint", "set", url, "mails", "2")
	must(t, "events", "checkpoint", "set", url, "mails", "1")
	require.Equal(t, `{"consumer":"mails","position":1,"behind":1}`+"\n", must(t, "events", "checkpoint", "list", url))
	require.Contains(t, refused(t, cli.ExitError, "events", "checkpoint", "set", url, "mails", "3"), "the last event is 2")
}

// TestEventsTruncate: events go to an archive first, which is compared, and archives make
// the store again.
func TestEventsTruncate(t *testing.T) {
	dir := t.TempDir()
	url, archive := "sqlite:"+filepath.Join(dir, "e.db"), func(name string) string { return filepath.Join(dir, name+".jsonl.zst") }
	var lines []string
	for _, data := range []string{"1", "2", "3", "4", "5", "6"} {
		lines = append(lines, `{"type":"A","data":`+data+`,"time":"2020-01-01T00:00:00Z"}`)
	}
	must(t, "events", "append", url, writeLines(t, dir, "lines", lines...))
	all := must(t, "events", "export", url)

	refused(t, cli.ExitUsage, "events", "truncate", url, "--before=3")
	require.Contains(t, refused(t, cli.ExitUsage, "events", "truncate", url, "--before=8", "--archive="+archive("a")), "the last event is 6")
	must(t, "events", "checkpoint", "set", url, "mails", "1")
	require.Contains(t, refused(t, cli.ExitError, "events", "truncate", url, "--before=3", "--archive="+archive("a")), `consumer "mails"`)
	must(t, "events", "truncate", url, "--before=3", "--unread", "--archive="+archive("a"))
	require.Contains(t, refused(t, cli.ExitError, "events", "read", url), "as are all before 3")
	require.Equal(t, strings.SplitAfterN(all, "\n", 3)[2], must(t, "events", "export", "--from=3", url))

	damaged := writeLines(t, dir, "damaged", strings.Split(all, "\n")[:3]...)
	require.Contains(t, refused(t, cli.ExitError, "events", "truncate", url, "--before=5", "--unread", "--archive="+damaged), "it ends before event 4; nothing was truncated")
	damaged = writeLines(t, dir, "damaged", strings.Split(strings.ReplaceAll(all, `"data":4`, `"data":5`), "\n")...)
	require.Contains(t, refused(t, cli.ExitError, "events", "truncate", url, "--before=5", "--unread", "--archive="+damaged), "event 4 as the store has it")
	whole := writeLines(t, dir, "whole", strings.Split(all, "\n")...)
	must(t, "events", "truncate", url, "--before=4", "--unread", "--archive="+whole)
	must(t, "events", "truncate", url, "--before=5", "--unread", "--no-archive")
	must(t, "events", "truncate", url, "--before=5", "--archive="+archive("never"))
	require.NoFileExists(t, archive("never"))

	again := "sqlite:" + filepath.Join(dir, "again.db")
	must(t, "events", "import", again, archive("a"))
	must(t, "events", "import", again, whole)
	require.Equal(t, all, must(t, "events", "export", again))
	must(t, "check", url)
}

// TestEventsStrict: nothing of a line is dropped or changed in silence, whichever command
// reads it (eventjson); what comes before the line is stored.
func TestEventsStrict(t *testing.T) {
	dir := t.TempDir()
	url := "sqlite:" + filepath.Join(dir, "e.db")
	lines := writeLines(t, dir, "lines", `{"type":"First"}`, `{"type":"A"} {"type":"B"}`, `{"type":"Last"}`)
	for _, command := range []string{"append", "import"} {
		require.Contains(t, refused(t, cli.ExitError, "events", command, url+command, lines), "line 2, column 14: invalid: something follows")
		require.Contains(t, must(t, "events", "stats", url+command), `"events": 1,`)
	}
}
