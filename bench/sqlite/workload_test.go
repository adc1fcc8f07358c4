package sqlite_test

import (
	"bytes"
	"errors"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/perf/benchfmt"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/mix"
	"github.com/varvedb/varve/bench/pace"
	"github.com/varvedb/varve/dcseed"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
)

// small is a data set that is built in no time.
func small(layout string) bench.Dataset {
	return bench.Dataset{
		Engine: suite.Engine, Layout: layout, Profile: bench.Minimal,
		Gen: bench.GenOptions{Entities: 300, PerBlock: 20, Seed: 4},
	}
}

func newCache(t *testing.T) *bench.Cache {
	t.Helper()
	cache, err := bench.OpenCache(t.TempDir())
	require.NoError(t, err)
	return cache
}

func openSmall(t *testing.T, d bench.Dataset) *bench.Copy { return openCopy(t, newCache(t), d) }

func openCopy(t *testing.T, cache *bench.Cache, d bench.Dataset) *bench.Copy {
	t.Helper()
	cp, err := cache.OpenCopy(t.Context(), d, nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, cp.Close()) })
	return cp
}

// exec runs a statement past the store, once for the whole table.
func exec(t *testing.T, cp *bench.Copy, statement string) {
	t.Helper()
	tx, err := cp.DB.Engine().Begin(t.Context())
	require.NoError(t, err)
	n, err := tx.Exec(t.Context(), statement)
	require.NoError(t, err)
	require.Positive(t, n)
	require.NoError(t, tx.Commit(t.Context()))
}

func commit(t *testing.T, cp *bench.Copy, d bench.Dataset, blocks int) (bench.Result, error) {
	t.Helper()
	x, err := d.Expectation(cp.Ready)
	require.NoError(t, err)
	res, err := bench.Commit(t.Context(), cp.Entities, bench.CommitConfig{
		Blocks: bench.Blocks(d.Profile, d.Gen.Next(bench.Endless)), Expect: x, Config: pace.Config{N: int64(blocks)},
	})
	return res, res.Checked(t.Context(), err)
}

func get(t *testing.T, cp *bench.Copy, d bench.Dataset, times int) (*pace.Outcome, error) {
	t.Helper()
	reads, err := bench.Gets(d.Profile, d.Gen, 0)
	require.NoError(t, err)
	return bench.ReadMix(t.Context(), cp.Entities, bench.ReadMixConfig{Mix: reads, Held: true, Config: pace.Config{N: int64(times)}})
}

func ask(t *testing.T, cp *bench.Copy, d bench.Dataset) error {
	t.Helper()
	for _, q := range bench.Queries() {
		answer, err := q.Answer(d.Profile, d.Gen)
		require.NoError(t, err)
		reads, err := q.Reads(answer)
		require.NoError(t, err)
		if _, err := bench.ReadMix(t.Context(), cp.Entities, bench.ReadMixConfig{Mix: reads, Held: true, Config: pace.Config{N: 1}}); err != nil {
			return err
		}
	}
	return nil
}

func TestWorkloads(t *testing.T) {
	for _, layout := range []string{"arkiv", "arkiv-pruned", "simple", "bare"} {
		t.Run(layout, func(t *testing.T) {
			d := small(layout)
			cp := openSmall(t, d)
			require.NoError(t, ask(t, cp, d))
			out, err := get(t, cp, d, 500)
			require.NoError(t, err)
			require.Equal(t, int64(500), out.Count)
			res, err := commit(t, cp, d, 3)
			require.NoError(t, err)
			require.Equal(t, int64(3), res.Count)
			require.Equal(t, uint64(60), res.Entities)
			require.Equal(t, uint64(60*12), res.Rows)
		})
	}
}

// Blocks that end within the warm-up time nothing, which is no result.
func TestNothingTimed(t *testing.T) {
	d := small("arkiv")
	cp := openSmall(t, d)
	cfg := bench.CommitConfig{Blocks: head(2, bench.Blocks(d.Profile, d.Gen.Next(bench.Endless))), Config: pace.Config{Duration: time.Minute, WarmUp: time.Minute}}
	_, err := bench.Commit(t.Context(), cp.Entities, cfg)
	require.ErrorContains(t, err, "none was timed")
}

// TestCombinedBegins: generating the first block is not measured, neither in
// the commits nor in the reads.
func TestCombinedBegins(t *testing.T) {
	d := small("compact")
	cp := openSmall(t, d)
	reads := anyEntity{read: make(chan bool, 1), drawn: new(atomic.Bool)}
	blocks := func(yield func(entity.Block, error) bool) {
		select {
		case <-reads.read:
		case <-time.After(300 * time.Millisecond):
		}
		reads.drawn.Store(true)
		head(5, bench.Blocks(d.Profile, d.Gen.Next(bench.Endless)))(yield)
	}
	res, out, err := bench.Combined(t.Context(), cp.Entities, bench.CommitConfig{Blocks: blocks, RowRate: 1000}, bench.ReadMixConfig{Mix: reads})
	require.NoError(t, err)
	require.EqualValues(t, 5, res.Count)
	require.Positive(t, out.Count)
}

// anyEntity reads an entity, and wants the first block to be drawn.
type anyEntity struct {
	read  chan bool
	drawn *atomic.Bool
}

func (anyEntity) Name() string                { return "any" }
func (anyEntity) Head() uint64                { return 0 }
func (anyEntity) Advance(*entity.Block) error { return nil }
func (anyEntity) Stream(mix.StreamOptions) mix.Stream {
	return func(*rand.Rand) mix.Op { return mix.Op{Kind: "any", Block: store.Head, Limit: 1} }
}

func (a anyEntity) Check(mix.Op, mix.Answer) error {
	if a.drawn.Load() {
		return nil
	}
	select {
	case a.read <- true:
	default:
	}
	return errors.New("it reads before there is a block")
}

// head streams the first n blocks.
func head(n int, blocks iter.Seq2[entity.Block, error]) iter.Seq2[entity.Block, error] {
	return func(yield func(entity.Block, error) bool) {
		left := n
		for b, err := range blocks {
			if left--; left < 0 || !yield(b, err) {
				return
			}
		}
	}
}

func TestCommitUpdates(t *testing.T) {
	for _, layout := range []string{"arkiv", "simple", "compact"} {
		d := small(layout)
		cp := openSmall(t, d)
		x, err := d.Expectation(cp.Ready)
		require.NoError(t, err)
		res, err := bench.Commit(t.Context(), cp.Entities, bench.CommitConfig{
			Blocks: head(4, bench.Updates(d.Profile, d.Gen, 1)),
			Expect: x, Config: pace.Config{N: 100},
		})
		require.NoError(t, res.Checked(t.Context(), err))
		require.Equal(t, int64(4), res.Count, "it ends with the blocks")
		require.Equal(t, uint64(4*20*12), res.Rows)
	}
}

// A store that is wrong in any way must not yield figures.
func TestTamperedStoresAreFound(t *testing.T) {
	const one = "(SELECT entity_key FROM payloads ORDER BY entity_key LIMIT 1)"
	get300 := func(t *testing.T, cp *bench.Copy, d bench.Dataset) error { _, err := get(t, cp, d, 5000); return err }
	commit1 := func(t *testing.T, cp *bench.Copy, d bench.Dataset) error { _, err := commit(t, cp, d, 1); return err }
	cache := newCache(t)
	for name, c := range map[string]struct {
		statement string
		workload  func(*testing.T, *bench.Copy, bench.Dataset) error
	}{
		"payload changed":      {"UPDATE payloads SET payload = zeroblob(1024)", get300},
		"payload cut":          {"UPDATE payloads SET payload = substr(payload, 2)", get300},
		"attribute changed":    {"UPDATE payloads SET string_attributes = replace(string_attributes, '\"v0', '\"v9')", get300},
		"number changed":       {"UPDATE payloads SET numeric_attributes = replace(numeric_attributes, ':8', ':9')", get300},
		"sequence changed":     {"UPDATE payloads SET numeric_attributes = replace(numeric_attributes, '\"$sequence\":', '\"$sequence\":1')", get300},
		"content type changed": {"UPDATE payloads SET content_type = 'text/plain'", get300},
		"version moved":        {"UPDATE payloads SET from_block = from_block - 1", get300},
		"entity gone":          {"DELETE FROM payloads WHERE from_block = 3", get300},
		"row gone":             {"DELETE FROM payloads WHERE entity_key = " + one, commit1},
		"attribute row gone":   {"DELETE FROM string_attributes WHERE entity_key = " + one + " AND key = '$owner'", commit1},
		"number row gone":      {"DELETE FROM numeric_attributes WHERE entity_key = " + one + " AND key = '$txIndex'", commit1},
		"version ended":        {"UPDATE payloads SET to_block = 4 WHERE entity_key = " + one, commit1},
		"digest changed":       {"UPDATE varve_blocks SET digest = zeroblob(32)", commit1},
		"query misses one":     {"DELETE FROM string_attributes WHERE key = '$owner'", ask},
		"query finds more":     {"UPDATE string_attributes SET value = (SELECT value FROM string_attributes WHERE key = '$owner' LIMIT 1) WHERE key = '$owner'", ask},
		"query in other order": {"UPDATE numeric_attributes SET value = 1000 - value WHERE key = '$sequence'", ask},
	} {
		t.Run(name, func(t *testing.T) {
			d := small("arkiv")
			cp := openCopy(t, cache, d)
			require.NoError(t, c.workload(t, cp, d), "before")
			cp = openCopy(t, cache, d)
			exec(t, cp, c.statement)
			require.ErrorIs(t, c.workload(t, cp, d), bench.ErrMismatch)
		})
	}
}

func TestDatasetIsBuiltOnce(t *testing.T) {
	cache, d := newCache(t), small("arkiv")
	key, err := d.Key()
	require.NoError(t, err)
	file := filepath.Join(cache.Root(), key, "data", "varve.db")
	lend := func() bench.Ready {
		cp, err := cache.OpenCopy(t.Context(), d, nil)
		require.NoError(t, err)
		require.NoError(t, cp.Close())
		require.NoError(t, cp.Close(), "a second Close does nothing")
		require.NoDirExists(t, cp.Dir)
		return cp.Ready
	}
	first := lend()
	before, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, first.Digest, lend().Digest)
	after, err := os.Stat(file)
	require.NoError(t, err)
	require.True(t, os.SameFile(before, after))

	// Damage that leaves the size as it is shows when the copy is opened.
	require.NoError(t, os.WriteFile(file, bytes.Repeat([]byte("x"), int(before.Size())), 0o644))
	require.Equal(t, first.Digest, lend().Digest)
}

func TestEveryParameterIsInTheKey(t *testing.T) {
	mendoza := func(scale float64, seed uint64, perBlock int, share float64) func(*bench.Dataset) {
		return func(d *bench.Dataset) {
			var err error
			d.Source, err = bench.MendozaSource(scale, seed, perBlock, share)
			require.NoError(t, err)
		}
	}
	centre := func(nodes int) func(*bench.Dataset) {
		return func(d *bench.Dataset) {
			m, err := dcseed.New(dcseed.Config{NodesPerDC: nodes})
			require.NoError(t, err)
			d.Source = bench.DataCentreSource(m)
		}
	}
	seen := map[string]bool{}
	for _, change := range []func(*bench.Dataset){
		func(*bench.Dataset) {},
		func(d *bench.Dataset) { d.Layout = "arkiv-pruned" },
		func(d *bench.Dataset) { d.Profile = bench.Typical },
		func(d *bench.Dataset) { d.Profile = bench.Minimal.WithPayload(7) },
		func(d *bench.Dataset) { d.Gen.Entities++ },
		func(d *bench.Dataset) { d.Gen.PerBlock++ },
		func(d *bench.Dataset) { d.Gen.Seed++ },
		func(d *bench.Dataset) { d.Gen.Start = 5 },
		func(d *bench.Dataset) { d.Engine.Params = map[string]string{"page_size": "8192"} },
		mendoza(0.001, 1, 40, 0.6), mendoza(0.002, 1, 40, 0.6), mendoza(0.001, 2, 40, 0.6), mendoza(0.001, 1, 41, 0.6), mendoza(0.001, 1, 40, 0.7),
		centre(3), centre(4),
	} {
		d := small("arkiv")
		change(&d)
		key, err := d.Key()
		require.NoError(t, err)
		require.False(t, seen[key])
		seen[key] = true
	}
	_, err := small("arkive").Key()
	require.ErrorContains(t, err, `unknown entity layout "arkive"; known are`)
}

func TestManifest(t *testing.T) {
	cp := openSmall(t, small("simple"))
	m, err := bench.DescribeHost(t.TempDir())
	require.NoError(t, err)
	require.NoError(t, m.OfStore(t.Context(), cp.DB, &store.Options{Durability: driver.Durable, Memory: 1 << 20}))
	for _, key := range []string{"host", "fsync-us", "go", "cores", "memory-kept-by", "engine-version", "setting-synchronous"} {
		require.NotEmpty(t, m.Get(key), key)
	}
	require.Equal(t, "1", m.Get("cache-mb"))
	var text bytes.Buffer // as the format's own reader reads it
	require.NoError(t, benchfmt.NewWriter(&text).Write(&benchfmt.Result{Name: benchfmt.Name("X"), Iters: 1, Values: []bench.Metric{{Value: 1, Unit: "ms"}}, Config: m}))
	reader := benchfmt.NewReader(&text, "")
	require.True(t, reader.Scan())
	require.ElementsMatch(t, m, reader.Result().(*benchfmt.Result).Config)
}
