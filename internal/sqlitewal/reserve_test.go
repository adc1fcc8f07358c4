package sqlitewal

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

const testFrame = 4096 + frameHeader

func newReserve(t *testing.T, content []byte) *reserve {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.db-wal")
	require.NoError(t, os.WriteFile(path, content, 0o600))
	return &reserve{path: path, frame: testFrame, limit: 4000}
}

// TestReserve: a log that has grown gets room for more, of zeros, once.
func TestReserve(t *testing.T) {
	content := bytes.Repeat([]byte{7}, 300*testFrame)
	r := newReserve(t, content)
	require.False(t, r.runsShort(reserveFrom/testFrame), "a short log needs none")
	require.True(t, r.runsShort(300))
	r.extend(context.Background(), 300)
	require.False(t, r.runsShort(300))
	require.False(t, r.runsShort(300+(reserveChunk-reserveAhead)/testFrame))
	require.True(t, r.runsShort(300+reserveChunk/testFrame))
	require.False(t, r.runsShort(4000), "the log is restarted")
	got, err := os.ReadFile(r.path)
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(got), 300*testFrame+reserveChunk)
	require.Equal(t, content, got[:len(content)])
	require.Empty(t, bytes.Trim(got[len(content):], "\x00"))
	r.forget()
	require.True(t, r.runsShort(300))
}

// TestReserveBesideWriter writes behind the end of the file, as a commit does,
// while the file is made longer: no byte of it is lost.
func TestReserveBesideWriter(t *testing.T) {
	r := newReserve(t, nil)
	f, err := os.OpenFile(r.path, os.O_WRONLY, 0)
	require.NoError(t, err)
	defer f.Close()
	frame := bytes.Repeat([]byte{9}, testFrame)
	const frames = 3000
	var wg sync.WaitGroup
	wg.Go(func() {
		for n := range int64(frames) {
			if _, err := f.WriteAt(frame, n*testFrame); err != nil {
				t.Error(err)
			}
		}
	})
	for n := int64(reserveFrom / testFrame); n < frames; n += 100 {
		r.extend(context.Background(), n)
	}
	wg.Wait()
	got, err := os.ReadFile(r.path)
	require.NoError(t, err)
	require.Equal(t, bytes.Repeat(frame, frames), got[:frames*testFrame])
}

// TestReserveGone: a log that cannot be made longer is left alone.
func TestReserveGone(t *testing.T) {
	r := newReserve(t, nil)
	require.NoError(t, os.Remove(r.path))
	r.extend(context.Background(), 300)
	require.NoFileExists(t, r.path)
	require.False(t, r.runsShort(300))
}
