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

// TestDocumentedRequests makes the requests that docs/service.md shows, one
// after the other, with curl, and compares the answers with the documented
// ones, in which … stands for anything.
func TestDocumentedRequests(t *testing.T) {
	curl, err := exec.LookPath("curl")
	if err != nil {
		t.Skip("curl is not installed")
	}
	text := documented(t)
	t.Chdir(t.TempDir())
	t.Setenv("K", "0x"+strings.Repeat("5a", 32))
	require.NoError(t, os.WriteFile("photo.png", []byte("a photo"), 0o600))
	made := 0
	for _, section := range []string{"REST", "Events"} { // each begins with a store of its own
		w := run(t, service.Options{}, server.Options{})
		_, part, ok := strings.Cut(text, "\n## "+section+"\n")
		require.True(t, ok)
		_, part, _ = strings.Cut(part, "```sh\n")
		part, _, ok = strings.Cut(part, "```\n")
		require.True(t, ok)
		requests := strings.Split("\n"+part, "\ncurl ")
		for _, part := range requests[1:] {
			command, answer, _ := strings.Cut(part, "\n# ")
			answer = strings.ReplaceAll(strings.Trim(answer, "#\n"), "\n# ", "\n") + "\n"
			pattern := strings.ReplaceAll(regexp.QuoteMeta(answer), "…", ".*")
			got := request(t, curl, strings.ReplaceAll(command, "localhost:8080", w.server.REST()), strings.Count(answer, "\n"))
			require.Regexp(t, "^"+strings.TrimSuffix(pattern, "\n"), got, command)
			made++
		}
	}
	copied, err := os.ReadFile("copy.png")
	require.NoError(t, err)
	require.Equal(t, "a photo", string(copied))
	require.Equal(t, strings.Count(text, "\ncurl "), made, "a request outside of the first block of REST or of Events")
}

// documented is docs/service.md.
func documented(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../../docs/service.md")
	require.NoError(t, err)
	return string(text)
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
