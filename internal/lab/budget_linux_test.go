package lab

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/pace"
	"github.com/varvedb/varve/bench/probe"
	"github.com/varvedb/varve/internal/memlimit"
)

// budget is a tenth of the data of budgeted.
const budget = 48 << 20

// budgeted is a lab with a data set of ten budgets.
func budgeted(t *testing.T, cache string) (*Lab, bench.Dataset) {
	t.Helper()
	l := testLab(t)
	c, err := bench.OpenCache(cache)
	require.NoError(t, err)
	l.Cache, l.Memory = c, budget
	l.Cache.InPlace = true
	return l, bench.Dataset{Engine: l.Engine, Layout: "compact", Profile: bench.Large, Gen: bench.GenOptions{Entities: 10 * budget / bench.Large.Payload, Seed: 1}}
}

// TestChildBeginsCold: pages that its parent has read are no present to a
// child, nor are unread parts of its files: it begins with none of its data in
// memory.
func TestChildBeginsCold(t *testing.T) {
	if testing.Short() {
		t.Skip("it loads half a gigabyte")
	}
	cache := t.TempDir()
	group, err := memlimit.New(budget)
	if err != nil {
		t.Skip("no limit can be set here: ", err)
	}
	defer func() { require.NoError(t, group.Close()) }()
	l, d := budgeted(t, cache)
	cp, err := l.Cache.OpenCopy(t.Context(), d, nil)
	require.NoError(t, err)
	require.NoError(t, cp.Close())
	require.NoError(t, probe.Fill(cache, 1<<40))
	resident, err := probe.Residency(cache)
	require.NoError(t, err)
	if resident.Share() < 0.5 {
		t.Skip("the page cache of this machine does not hold the data, or they are not on a disk")
	}

	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestBudgetedChild$", "-test.v")
	cmd.Env = append(os.Environ(), "VARVE_BUDGETED="+cache, "TMPDIR="+t.TempDir())
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	require.NoError(t, group.Start(cmd))
	require.NoError(t, cmd.Wait(), out.String())
	_, text, found := strings.Cut(out.String(), "resident-before ")
	require.True(t, found, out.String())
	share, err := strconv.ParseFloat(strings.Fields(text)[0], 64)
	require.NoError(t, err)
	require.Less(t, share, 0.01)
}

// TestBudgetedChild is the process that TestChildBeginsCold starts.
func TestBudgetedChild(t *testing.T) {
	cache := os.Getenv("VARVE_BUDGETED")
	if cache == "" {
		t.Skip("for the test that starts it")
	}
	l, d := budgeted(t, cache)
	r := new(Record)
	nothing := func(context.Context) (*pace.Outcome, error) { return nil, nil }
	require.NoError(t, l.withDataset(t.Context(), d, l.StoreOptions(), r, func(cp *bench.Copy) error {
		return l.Timed(t.Context(), cp, r, nothing)
	}))
	share, known := r.Metric("resident-before")
	require.True(t, known)
	fmt.Println("resident-before", share)
}
