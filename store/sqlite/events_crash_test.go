package sqlite_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/event"
)

// crashEnv names the database that a child process writes to until it is killed.
const crashEnv = "VARVE_TEST_EVENTS_CRASH"

// crashBatch is the events of one append; the crash must not tear one apart.
const crashBatch = 3

// TestEventsCrash kills a process whose goroutines share commits. Every append
// that it acknowledged is there, each is whole or absent, and positions go on.
func TestEventsCrash(t *testing.T) {
	if url := os.Getenv(crashEnv); url != "" {
		appendUntilKilled(t, url)
		return
	}
	url := "sqlite://" + t.TempDir() + "/varve.db"
	for _, n := range []int{150, 250, 3000} { // of short logs and of one that got room ahead
		acknowledged := killAfter(t, url, n)
		stored := wholeAppends(t, url)
		for _, name := range acknowledged {
			require.True(t, stored[name], "append %s was acknowledged", name)
		}
	}
}

// appendUntilKilled prints a line for each acknowledged append.
func appendUntilKilled(t *testing.T, url string) {
	evs := openEvents(t, url)
	head, err := evs.Head(context.Background())
	require.NoError(t, err)
	var mu sync.Mutex
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for n := 0; ; n++ {
				name := fmt.Sprintf("%d-%d-%d", head, w, n)
				var batch []event.Event
				for range crashBatch {
					batch = append(batch, event.Event{Type: "A", Data: []byte(name), Tags: []event.Tag{event.NewTag("append", name)}})
				}
				if _, err := evs.Append(context.Background(), batch, event.Unless(event.Tagged(batch[0].Tags[0]))); err != nil {
					panic(err)
				}
				mu.Lock()
				_, err := io.WriteString(os.Stdout, "acknowledged "+name+"\n")
				mu.Unlock()
				if err != nil {
					return // the parent is gone
				}
			}
		})
	}
	wg.Wait()
}

// killAfter runs the child and kills it while it goes on, after it has
// acknowledged n appends. It returns their names.
func killAfter(t *testing.T, url string, n int) (names []string) {
	t.Helper()
	child := exec.Command(os.Args[0], "-test.run=^TestEventsCrash$")
	child.Env = append(os.Environ(), crashEnv+"="+url)
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if name, ok := strings.CutPrefix(lines.Text(), "acknowledged "); ok {
			names = append(names, name)
		}
		if len(names) == n {
			require.NoError(t, child.Process.Kill())
		}
	}
	require.Error(t, child.Wait(), "the child was killed")
	require.GreaterOrEqual(t, len(names), n)
	return names
}

// wholeAppends reads everything back and checks it against itself.
func wholeAppends(t *testing.T, url string) map[string]bool {
	t.Helper()
	evs := openEvents(t, url)
	count := map[string]int{}
	last := uint64(0)
	for e, err := range evs.Read(t.Context(), event.All(), nil) {
		require.NoError(t, err)
		require.Greater(t, e.Position, last)
		last = e.Position
		count[string(e.Data)]++
	}
	whole := map[string]bool{}
	for name, n := range count {
		require.Equal(t, crashBatch, n, "append %s", name)
		whole[name] = true
	}
	return whole
}

func openEvents(t *testing.T, url string) *store.Events {
	t.Helper()
	db, err := store.Open(context.Background(), url, nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	evs, err := db.Events(context.Background(), nil)
	require.NoError(t, err)
	return evs
}
