package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/probe"
	"github.com/varvedb/varve/bench/result"
	"github.com/varvedb/varve/internal/experiment"
)

// watched runs three tasks with looks at a machine that others use in those that are
// named by "o", and tells which were measured, with the looks.
func watched(t *testing.T, out, looks string, failAt int) (measured []string, set *result.Results, errs string, err error) {
	t.Helper()
	at := 0
	w := &watch{
		out: out, host: bench.Host{Machine: "here"}, pauses: make([]time.Duration, 2),
		look: func(context.Context) (m probe.Machine, err error) {
			require.Less(t, at, len(looks), "one look more than there should be")
			if m.Others = new(0.); looks[at] == 'o' {
				m.Others = new(0.5)
			}
			at++
			return m, nil
		},
	}
	if before, err := result.Read(out); err == nil {
		for i := range before.Records {
			w.recall(&before.Records[i])
		}
	}
	var stderr bytes.Buffer
	e := &env{ctx: t.Context(), stderr: &stderr}
	tasks := make([]task, 3)
	for i := range tasks {
		tasks[i] = task{of: experiment.Experiment{ID: fmt.Sprint("X", i+1)}, engine: bench.Engine{Name: "sqlite"}}
	}
	err = w.through(e, tasks, func(i int, off string, over bool) error {
		word := tasks[i].of.ID
		if off != "" {
			word += " off"
		}
		if over {
			word += " over"
		}
		if measured = append(measured, word); len(measured) == failAt {
			return errors.New("ended")
		}
		return nil
	})
	set, readErr := result.Read(out)
	require.NoError(t, readErr)
	require.Empty(t, set.Warnings)
	if err == nil {
		require.Equal(t, len(looks), at, "looks")
	}
	return measured, set, stderr.String(), err
}

// TestWatch: a task is measured when the machine is as it was; one that was followed by a
// machine that was off for more than a look is measured again, once.
func TestWatch(t *testing.T) {
	for _, c := range []struct {
		name, looks string
		want        []string
	}{
		{"a quiet machine", "....", []string{"X1", "X2", "X3"}},
		{"others before the first", "oo....", []string{"X1", "X2", "X3"}},
		{"what a task leaves to the disk", ".o...", []string{"X1", "X2", "X3"}},
		{"others beside the second", "..oo...", []string{"X1", "X2", "X2 over", "X3"}},
		{"and again", "..oo.oo..", []string{"X1", "X2", "X2 over", "X3"}},
		{"others for long", "..oooo.", []string{"X1", "X2", "X3 off"}},
		{"others for good", "ooo" + "ooo" + "ooo" + "ooo", []string{"X1 off", "X2 off", "X3 off"}},
	} {
		measured, set, errs, err := watched(t, t.TempDir(), c.looks, 0)
		require.NoError(t, err, c.name)
		require.Equal(t, c.want, measured, c.name)
		require.Len(t, set.Records, len(c.looks), "%s: a record of each look", c.name)
		for i, r := range set.Records {
			require.Equal(t, i, r.Repeat)
			require.Equal(t, "M1 Machine/machine=here", r.Key())
			require.Equal(t, c.looks[i] == 'o', len(r.Marks) == 2, "%s: the record says that it was off", c.name)
			var m bench.Manifest
			require.NoError(t, set.Manifest(&r, &m))
			require.Equal(t, "here", m.Host.Machine)
		}
		require.Equal(t, c.looks != "....", bytes.Contains([]byte(errs), []byte("the machine is off")), c.name)
	}
}

// TestWatchGoesOn: a run that ends is gone on with in the same set, and looks are judged
// by those before.
func TestWatchGoesOn(t *testing.T) {
	out := t.TempDir()
	_, set, _, err := watched(t, out, "...", 2)
	require.ErrorContains(t, err, "ended")
	require.Len(t, set.Records, 2)
	_, set, _, err = watched(t, out, "....", 0)
	require.NoError(t, err)
	require.Len(t, set.Records, 6)
	require.Equal(t, 5, set.Records[5].Repeat)
}
