package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/cli"

	_ "github.com/varvedb/varve/store/sqlite"
)

// varve runs a command line and returns its exit code and what it printed.
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

	code, out, errs := varve("events", "append", "--batch=2", url, lines)
	require.Equal(t, cli.ExitOK, code, errs)
	require.Equal(t, "{\"position\":1}\n{\"position\":2}\n{\"position\":3}\n", out)

	code, _, errs = varve("events", "append", "--unless-type=CourseDefined", "--unless-tag=course:c1", url, lines)
	require.Equal(t, cli.ExitError, code)
	require.Contains(t, errs, "conflict: event 1")

	code, out, errs = varve("events", "read", "--type=Subscribed", "--tag=student:s:1", url)
	require.Equal(t, cli.ExitOK, code, errs)
	out = regexp.MustCompile(`"time":"[^"]*"`).ReplaceAllString(out, `"time":"T"`)
	require.Equal(t, `{"position":2,"time":"T","id":"00000000-0000-0000-0000-000000000007","type":"Subscribed",`+
		`"tags":[["course","c1"],["student","s:1"]],"data_base64":"AP8="}`+"\n", out)

	code, out, errs = varve("events", "stats", url)
	require.Equal(t, cli.ExitOK, code, errs)
	var stats map[string]any
	require.NoError(t, json.Unmarshal([]byte(out), &stats))
	require.EqualValues(t, 3, stats["events"])

	code, _, errs = varve("events", "read", "--tag=broken", url)
	require.Equal(t, cli.ExitUsage, code)
	require.Contains(t, errs, "want key:value")
}
