package cli

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// newTestParts are parts that are shown in a buffer.
func newTestParts(ctx context.Context, guesses ...time.Duration) (*parts, *bytes.Buffer) {
	var out bytes.Buffer
	return newParts(&env{ctx: ctx, stderr: &out}, guesses, false), &out
}

// Elsewhere than on a terminal a part has one line, whatever its process says.
func TestPartsInAFile(t *testing.T) {
	p, out := newTestParts(t.Context(), 0, 0)
	for _, name := range []string{"one", "two"} {
		p.begin(name)
		_, err := p.Write([]byte("load: 5 rows\nload: 6 rows\n"))
		require.NoError(t, err)
		p.end()
	}
	require.Regexp(t, `^part 1 of 2: one\npart 2 of 2( \(about \w+ left\))?: two\n$`, out.String())

	p, out = newTestParts(t.Context(), 0)
	p.verbose = true
	p.begin("one")
	_, err := p.Write([]byte("load: 5 rows\n"))
	require.NoError(t, err)
	p.end()
	require.Equal(t, "part 1 of 1: one\nload: 5 rows\n", out.String(), "with -v it has all")
}

// On a terminal there is one line, which is rewritten, has the last message, is
// not wider than the terminal, and is gone at the end.
func TestPartsOnATerminal(t *testing.T) {
	p, out := newTestParts(t.Context(), 0)
	p.columns = 40
	p.begin("one")
	p.timer.Stop()
	_, err := p.Write([]byte("load: 5 rows\nload: 6 of many rows, and more\n"))
	require.NoError(t, err)
	p.rewrite()
	p.end()
	p.rewrite() // which was under way
	require.NotContains(t, out.String(), "\n")
	lines := strings.Split(out.String(), erase)
	require.Equal(t, "part 1 of 1: one; load: 6 of many rows,", lines[len(lines)-2])
	require.Len(t, lines[len(lines)-2], p.columns-1)
	require.Empty(t, lines[len(lines)-1])
}

// The time that is left follows from the guesses, corrected by the parts that
// have ended, and is not more than the command has.
func TestPartsLeft(t *testing.T) {
	p, _ := newTestParts(t.Context(), 10*time.Second, 20*time.Second)
	now := time.Now()
	p.start, p.begun = now, now
	require.InDelta(t, 30, p.remaining(now).Seconds(), 0.1)
	p.finished, p.begun = 1, now.Add(30*time.Second) // three times the guess
	require.InDelta(t, 60, p.remaining(p.begun).Seconds(), 0.1)
	require.InDelta(t, 50, p.remaining(p.begun.Add(10*time.Second)).Seconds(), 0.1)

	p, _ = newTestParts(t.Context(), 0, 0)
	require.Zero(t, p.remaining(now), "unknown")

	ctx, cancel := context.WithDeadline(t.Context(), now.Add(5*time.Second))
	defer cancel()
	p, _ = newTestParts(ctx, time.Hour)
	p.start, p.begun = now, now
	require.InDelta(t, 5, p.remaining(now).Seconds(), 0.1)
}
