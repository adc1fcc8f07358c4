package sqlite_test

import (
	"os"
	osexec "os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/bench"
)

// inPlace is a cache that uses a small data set directly.
type inPlace struct {
	*bench.Cache
	d      bench.Dataset
	data   string // directory of the data set
	marker string
}

func openInPlace(t *testing.T) *inPlace {
	t.Helper()
	p := &inPlace{Cache: newCache(t), d: small("arkiv")}
	p.InPlace = true
	key, err := p.d.Key()
	require.NoError(t, err)
	p.data, p.marker = filepath.Join(p.Root(), key, "data"), filepath.Join(p.Root(), key, "ready.json")
	return p
}

func (p *inPlace) open(t *testing.T) *bench.Copy {
	t.Helper()
	cp, err := p.OpenCopy(t.Context(), p.d, nil)
	require.NoError(t, err)
	return cp
}

// file tells which file a database is: the same one, wherever it lies. That it is open until
// the test ends keeps its number from being given to another.
func file(t *testing.T, dir string) os.FileInfo {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, "varve.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	info, err := f.Stat()
	require.NoError(t, err)
	return info
}

// whole requires that the data set in use is whole, and that no other file is
// left.
func (p *inPlace) whole(t *testing.T) os.FileInfo {
	t.Helper()
	cp := p.open(t)
	require.NoError(t, ask(t, cp, p.d))
	_, err := get(t, cp, p.d, 3_000)
	require.NoError(t, err)
	info := file(t, cp.Dir)
	require.NoError(t, cp.Close())
	left, err := filepath.Glob(filepath.Join(p.Root(), "run-*"))
	require.NoError(t, err)
	require.Empty(t, left)
	return info
}

// TestInPlaceReaders: a reader has the data set itself, which is not built again.
func TestInPlaceReaders(t *testing.T) {
	p := openInPlace(t)
	cp := p.open(t)
	lent := file(t, cp.Dir)
	require.Equal(t, p.data, cp.Dir, "there is no second copy")
	require.NoFileExists(t, p.marker)
	require.NoError(t, ask(t, cp, p.d))
	require.NoError(t, cp.Close())
	require.NoError(t, cp.Close(), "a second Close does nothing")
	require.True(t, os.SameFile(lent, file(t, p.data)))
	require.FileExists(t, p.marker)
	require.True(t, os.SameFile(lent, p.whole(t)))

	p.InPlace = false
	require.False(t, os.SameFile(lent, p.whole(t)), "a copy again")
	require.True(t, os.SameFile(lent, file(t, p.data)))
}

// TestInPlaceChanged: a data set that a workload has changed is not used again.
func TestInPlaceChanged(t *testing.T) {
	p := openInPlace(t)
	cp := p.open(t)
	_, err := commit(t, cp, p.d, 1)
	require.NoError(t, err)
	require.NoError(t, cp.Close())
	require.NoDirExists(t, cp.Dir)
	p.whole(t)
}

const killedEnv = "VARVE_TEST_KILLED_IN"

// TestKilledInPlace is the process that TestInPlaceKilled starts.
func TestKilledInPlace(t *testing.T) {
	root := os.Getenv(killedEnv)
	if root == "" {
		t.Skip("it ends its process")
	}
	cache, err := bench.OpenCache(root)
	require.NoError(t, err)
	p := &inPlace{Cache: cache, d: small("arkiv")}
	p.InPlace = true
	exec(t, p.open(t), "UPDATE payloads SET payload = zeroblob(1024)")
	require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGKILL))
	select {}
}

// TestInPlaceKilled: a process is killed when it has changed a data set in place, of
// which neither head nor size tell. The next one finds the rest and builds it again.
func TestInPlaceKilled(t *testing.T) {
	p := openInPlace(t)
	before := p.whole(t)
	cmd := osexec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKilledInPlace$")
	cmd.Env = append(os.Environ(), killedEnv+"="+p.Root())
	out, err := cmd.CombinedOutput()
	var ended *osexec.ExitError
	require.ErrorAs(t, err, &ended, "%s", out)
	require.Equal(t, syscall.SIGKILL, ended.Sys().(syscall.WaitStatus).Signal(), "%s", out)
	require.NoFileExists(t, p.marker)
	require.False(t, os.SameFile(before, p.whole(t)))
}

// TestSizeIsEstimated: the estimated size of a data set, made before it is
// built, is within a factor of two and a half of the real one.
func TestSizeIsEstimated(t *testing.T) {
	source, err := bench.MendozaSource(0.01, 1, 20, 0.6)
	require.NoError(t, err)
	for _, layout := range []string{"arkiv", "simple", "compact"} {
		for name, d := range map[string]bench.Dataset{
			"mendoza": {Engine: suite.Engine, Layout: layout, Source: source},
			"typical": {Engine: suite.Engine, Layout: layout, Profile: bench.Typical, Gen: bench.GenOptions{Entities: 2_000, Seed: 1}},
		} {
			cp := openSmall(t, d)
			took := cp.Ready.Bytes
			about, err := d.Size()
			require.NoError(t, err)
			t.Logf("%s of %s: about %d, took %d", layout, name, about, took)
			require.Less(t, float64(took), 1.5*float64(about))
			require.Greater(t, float64(took), float64(about)/2.5)
		}
	}
}

// building counts the reports about a data set.
type building struct{ total, done, ended int64 }

func (b *building) Set(done int64) { b.done = done }
func (b *building) Finish()        { b.ended++ }

// TestProgress: building a data set says how far it is, to its end, and one that is
// there says nothing.
func TestProgress(t *testing.T) {
	p := openInPlace(t)
	var told []*building
	p.Progress = func(name, unit string, total int64) bench.Progress {
		require.Contains(t, name, "arkiv on sqlite")
		require.Equal(t, "rows", unit)
		told = append(told, &building{total: total})
		return told[len(told)-1]
	}
	for range 2 {
		require.NoError(t, p.open(t).Close())
	}
	require.Len(t, told, 1)
	require.Positive(t, told[0].done)
	require.LessOrEqual(t, told[0].done, told[0].total)
	require.Equal(t, int64(1), told[0].ended)
}
