package sqlite_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store/event"
)

// consumeCrashEnv names the database on which a child process consumes events until it is
// killed.
const consumeCrashEnv = "VARVE_TEST_CONSUME_CRASH"

// TestConsumeCrash kills a consumer again and again. Each event leads to one other event all
// the same, and none is left out.
func TestConsumeCrash(t *testing.T) {
	if url := os.Getenv(consumeCrashEnv); url != "" {
		consumeUntilKilled(t, url)
		return
	}
	const total = 200
	url := "sqlite://" + t.TempDir() + "/varve.db"
	evs := openEvents(t, url)
	for n := range total {
		_, err := evs.Append(t.Context(), []event.Event{{Type: "N", Data: []byte(fmt.Sprint(n))}}, nil)
		require.NoError(t, err)
	}
	for _, handled := range []int{1, 20, 60} {
		killConsumer(t, url, handled)
	}
	finished := errors.New("finished")
	_, err := evs.Append(t.Context(), []event.Event{{Type: "N", Data: []byte("last")}}, nil)
	require.NoError(t, err)
	err = event.Consume(t.Context(), evs, crashConsumer(func(e *event.Sequenced) error {
		if string(e.Data) == "last" {
			return finished
		}
		return nil
	}))
	require.ErrorIs(t, err, finished)
	n := 0
	for e, err := range evs.Read(t.Context(), event.Of("Handled"), nil) {
		require.NoError(t, err)
		require.Equal(t, fmt.Sprint(n), string(e.Data))
		n++
	}
	require.Equal(t, total, n)
}

func crashConsumer(before func(*event.Sequenced) error) event.Consumer {
	return event.Consumer{Name: "c", Query: event.Of("N"), Handle: func(_ context.Context, e *event.Sequenced) ([]event.Event, *event.Condition, error) {
		return []event.Event{{Type: "Handled", Data: e.Data}}, nil, before(e)
	}}
}

func consumeUntilKilled(t *testing.T, url string) {
	err := event.Consume(context.Background(), openEvents(t, url), crashConsumer(func(*event.Sequenced) error {
		_, err := io.WriteString(os.Stdout, "handled\n")
		return err
	}))
	t.Log(err) // the parent is gone
}

// killConsumer kills a child while it goes on, after it has handled some events.
func killConsumer(t *testing.T, url string, n int) {
	t.Helper()
	child := exec.Command(os.Args[0], "-test.run=^TestConsumeCrash$")
	child.Env = append(os.Environ(), consumeCrashEnv+"="+url)
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	lines, handled := bufio.NewScanner(out), 0
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "handled") {
			handled++
		}
		if handled == n {
			require.NoError(t, child.Process.Kill())
		}
	}
	require.Error(t, child.Wait(), "the child was killed")
	require.GreaterOrEqual(t, handled, n)
}
