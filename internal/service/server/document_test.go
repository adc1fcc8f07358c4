package server_test

import (
	"context"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/service"
	"github.com/varvedb/varve/internal/service/server"
)

// TestDocumentedRequests makes the requests that docs/service.md shows of events, one
// after the other, with curl, and compares the answers with what it says of them, in
// which … stands for anything.
func TestDocumentedRequests(t *testing.T) {
	curl, err := exec.LookPath("curl")
	if err != nil {
		t.Skip("curl is not installed")
	}
	text, err := os.ReadFile("../../../docs/service.md")
	require.NoError(t, err)
	_, section, ok := strings.Cut(string(text), "\n## Events\n")
	require.True(t, ok)
	_, section, _ = strings.Cut(section, "```sh\n")
	section, _, ok = strings.Cut(section, "```\n")
	require.True(t, ok)
	w := run(t, service.Options{}, server.Options{})
	for part := range strings.SplitSeq(strings.TrimPrefix(section, "curl "), "\ncurl ") {
		command, answer, _ := strings.Cut(part, "\n# ")
		answer = strings.ReplaceAll(strings.Trim(answer, "#\n"), "\n# ", "\n") + "\n"
		pattern := strings.ReplaceAll(regexp.QuoteMeta(answer), "…", ".*")
		require.Regexp(t, "^"+pattern, request(t, curl, strings.ReplaceAll(command, "localhost:8080", w.server.REST()), strings.Count(answer, "\n")))
	}
}

// request runs curl until it ends, or has printed as many lines.
func request(t *testing.T, curl, command string, lines int) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	c := exec.CommandContext(ctx, "sh", "-c", "exec "+curl+" -s "+command)
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	var got strings.Builder
	for b := make([]byte, 1024); strings.Count(got.String(), "\n") < lines; {
		n, err := out.Read(b)
		got.Write(b[:n])
		if err != nil {
			break
		}
	}
	cancel()
	_ = c.Wait() // one that does not end was killed
	return got.String()
}
