package postgres

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/pgtest"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/event"
)

// What a child process of TestEventsOfTwoProcesses appends, and where.
const (
	appenderURL  = "POSTGRES_TEST_APPENDER_URL"
	appenderName = "POSTGRES_TEST_APPENDER_NAME"

	appenders = 4  // goroutines of a child
	appends   = 40 // of each, all conditional
)

// TestEventsOfTwoProcesses lets two processes append to one server while a third
// one follows: no position turns up below one that was read before.
func TestEventsOfTwoProcesses(t *testing.T) {
	if url := os.Getenv(appenderURL); url != "" {
		appendAsChild(t, url, os.Getenv(appenderName))
		return
	}
	url := pgtest.NewURL(t)
	db, err := store.Open(t.Context(), url, nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	evs, err := db.Events(t.Context(), &store.EventOptions{PollInterval: time.Millisecond})
	require.NoError(t, err)
	a, b := startAppender(t, url, "a"), startAppender(t, url, "b")
	a.begin(t)
	b.begin(t)
	followed := follow(t, evs)
	require.NoError(t, a.cmd.Wait())
	require.NoError(t, b.cmd.Wait())
	requireWhole(t, evs, followed)
}

// appender is a child process. It opens the store and then waits until its input
// ends, so that both begin together.
type appender struct {
	cmd *exec.Cmd
	in  io.Closer
}

func startAppender(t *testing.T, url, name string) appender {
	t.Helper()
	child := exec.Command(os.Args[0], "-test.run=^TestEventsOfTwoProcesses$")
	child.Env = append(os.Environ(), appenderURL+"="+url, appenderName+"="+name)
	child.Stderr = os.Stderr
	in, err := child.StdinPipe()
	require.NoError(t, err)
	out, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	_, err = io.ReadFull(out, make([]byte, len(opened)))
	require.NoError(t, err)
	return appender{cmd: child, in: in}
}

const opened = "opened\n"

func (a appender) begin(t *testing.T) { require.NoError(t, a.in.Close()) }

// appendAsChild appends pairs of events: one on the condition that the turn was not
// taken, one to see that pairs are whole. Both children want the same turns.
func appendAsChild(t *testing.T, url, name string) {
	db, err := store.Open(t.Context(), url, nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	evs, err := db.Events(t.Context(), &store.EventOptions{IndexEvery: 32})
	require.NoError(t, err)
	_, err = io.WriteString(os.Stdout, opened)
	require.NoError(t, err)
	_, err = io.ReadAll(os.Stdin)
	require.NoError(t, err)
	var wg sync.WaitGroup
	for g := range appenders {
		wg.Go(func() {
			for n := range appends {
				turn := event.NewTag("turn", fmt.Sprintf("%d-%d", g, n))
				pair := []event.Event{{Type: "Taken", Tags: []event.Tag{turn}, Data: []byte(name)}, {Type: "Seen", Tags: []event.Tag{turn}, Data: []byte(name)}}
				for {
					_, err := evs.Append(context.Background(), pair, event.Unless(event.Typed("Taken", turn)))
					if err == nil {
						break
					}
					// The other child took it: one event more, of another kind.
					require.ErrorIs(t, err, store.ErrConflict)
					pair, turn = []event.Event{{Type: "Late", Tags: []event.Tag{turn}, Data: []byte(name)}}, event.NewTag("turn", turn.Value+name)
				}
			}
		})
	}
	wg.Wait()
}

// follow reads until each child's every turn is there: three events for two
// children.
func follow(t *testing.T, evs *store.Events) (list []event.Sequenced) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for e, err := range evs.Subscribe(ctx, event.All(), 0) {
		require.NoError(t, err, "after %d events", len(list))
		if len(list) > 0 {
			require.Greater(t, e.Position, list[len(list)-1].Position)
		}
		if list = append(list, e); len(list) == 3*appenders*appends {
			break
		}
	}
	return list
}

// requireWhole compares what was followed with what is there in the end.
func requireWhole(t *testing.T, evs *store.Events, followed []event.Sequenced) {
	t.Helper()
	n := 0
	taken := map[event.Tag]int{}
	writers := map[string]int{}
	for e, err := range evs.Read(t.Context(), event.All(), nil) {
		require.NoError(t, err)
		require.Less(t, n, len(followed))
		require.Equal(t, e, followed[n], "what was followed is what is there")
		writers[string(e.Data)]++
		switch n++; e.Type {
		case "Taken":
			taken[e.Tags[0]]++
		case "Seen":
			require.Equal(t, followed[n-2].Tags, e.Tags, "a pair lies together")
		}
	}
	require.Equal(t, len(followed), n)
	require.Len(t, taken, appenders*appends)
	for turn, times := range taken {
		require.Equal(t, 1, times, turn)
	}
	require.Len(t, writers, 2)
}
