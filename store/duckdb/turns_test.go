package duckdb_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/event"
)

// turnsVar names the database that processes of TestTurns open alternately.
const turnsVar = "VARVE_DUCKDB_TEST_TURNS"

// turns is how often each process opens the database.
const turns = 30

// TestTurns: two processes open one database alternately, append an event and
// close it. Each has the copy that guards the database while it has it open,
// though the other one has just closed it and removed its own. No call fails,
// no event is lost, and no file stays behind.
func TestTurns(t *testing.T) {
	path := newPath(t)
	var together sync.WaitGroup
	for range 2 {
		together.Go(func() {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), turnsVar+"="+path)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	together.Wait()
	require.NoFileExists(t, path+".guard")
	db, err := store.Open(t.Context(), "duckdb://"+path, nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	evs, err := db.Events(t.Context(), nil)
	require.NoError(t, err)
	head, err := evs.Head(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 2*turns, head)
}

// appendInTurns is one of the processes.
func appendInTurns(path string) int {
	for i := range turns {
		err := appendGuarded(path)
		for errors.Is(err, store.ErrLocked) { // at once, to come right behind the other's close
			err = appendGuarded(path)
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "turn %d: %v\n", i, err)
			return 1
		}
	}
	return 0
}

// appendGuarded fails also when the database is open and has no guard.
func appendGuarded(path string) (err error) {
	ctx := context.Background()
	db, err := store.Open(ctx, "duckdb://"+path, &store.Options{LockTimeout: time.Microsecond})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	evs, err := db.Events(ctx, nil)
	if err != nil {
		return err
	}
	if _, err := evs.Append(ctx, []event.Event{{Type: "A"}}, nil); err != nil {
		return err
	}
	_, err = os.Stat(path + ".guard")
	return err
}
