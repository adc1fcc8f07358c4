package gobench

import (
	"context"
	"errors"
	"iter"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/mix"
	"github.com/varvedb/varve/dcseed"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
)

// The part of the base profile that benchmarks load, and the operations of a
// block of what comes after it.
const (
	mendozaEntities = 800_000 // of the profile at scale 1
	mendozaShare    = 0.6
	mendozaPerBlock = 20
)

// mendoza returns a data set of the base profile with about as many entities as
// the flags say.
func (s Suite) mendoza(b *testing.B, layout string) (bench.Dataset, *bench.Source) {
	b.Helper()
	source, err := bench.MendozaSource(float64(s.Flags.size())/mendozaEntities/mendozaShare, seed, mendozaPerBlock, mendozaShare)
	must(b, err)
	return bench.Dataset{Engine: s.Engine, Layout: layout, Profile: bench.Profile{Name: "mendoza"}, Source: source}, source
}

// oracle knows the answers on a data set.
func oracle(b *testing.B, s *bench.Source) *mix.Oracle {
	b.Helper()
	o := mix.NewOracle()
	must(b, o.Follow(s.Blocks()))
	return o
}

// RunReadMix measures one read of the mixes of the user's documents an
// operation, with 1 client and with 10.
func RunReadMix(b *testing.B, s Suite) {
	layouts, err := s.Flags.chooseLayouts(firstInShort("arkiv", "simple")...)
	must(b, err)
	for _, layout := range layouts {
		d, source := s.mendoza(b, layout)
		known := oracle(b, source)
		for _, name := range []string{mix.A, mix.B, mix.C} {
			reads, err := mix.New(name, known)
			must(b, err)
			for _, clients := range []string{"1", "10"} {
				b.Run(s.Name(d)+"/mix="+name+"/clients="+clients, func(b *testing.B) {
					s.readMix(b, d, reads, map[string]int{"1": 1, "10": 10}[clients])
				})
			}
		}
	}
}

func (s Suite) readMix(b *testing.B, d bench.Dataset, reads mix.Reads, clients int) {
	r := s.Open(b, d, func(o *store.Options) { o.Readers = clients })
	b.ReportAllocs()
	out, err := bench.ReadMix(b.Context(), r.Entities, bench.ReadMixConfig{Mix: reads, Clients: clients, Seed: seed, Loop: b})
	must(b, err)
	res := bench.Result{Latency: out.All()}
	report(b, res.Metrics(), []bench.Metric{{Value: out.Capacity(), Unit: "qps"}})
}

// RunDataCentre measures one question of a data centre's scheduler an operation.
func RunDataCentre(b *testing.B, s Suite) {
	layouts, err := s.Flags.chooseLayouts("arkiv")
	must(b, err)
	cfg := dcseed.Config{DCs: 1, NodesPerDC: max(s.Flags.size()/6, 100), WorkloadsPerDC: max(s.Flags.size()/6, 100) * 5, Payload: 1 << 10, Seed: seed}
	source, err := bench.DataCentreSource(cfg, 0)
	must(b, err)
	model, err := dcseed.New(cfg)
	must(b, err)
	for _, layout := range layouts {
		d := bench.Dataset{Engine: s.Engine, Layout: layout, Profile: bench.Profile{Name: "dc"}, Source: source}
		reads := mix.NewDataCentre(model, mix.DataCentreOptions{Limit: 100, Head: model.FirstLoadBlock() - 1})
		b.Run(s.Name(d), func(b *testing.B) { s.readMix(b, d, reads, 1) })
	}
}

// RunCheckpoint measures one commit of the base profile an operation, by who runs
// checkpoints and at which size of the log.
func RunCheckpoint(b *testing.B, s Suite) {
	if !linked(b, s.Engine).Capabilities.WALCheckpoint {
		b.Skip("the engine's checkpoints cannot be chosen")
	}
	d, source := s.mendoza(b, "arkiv")
	for _, p := range []struct {
		name   string
		policy driver.CheckpointPolicy
		frames int
	}{
		{"inline-1000", driver.Inline, 1000}, {"inline-10000", driver.Inline, 10_000},
		{"background-4000", driver.Background, 4000}, {"manual", driver.Manual, 0},
	} {
		b.Run(s.Name(d)+"/policy="+p.name, func(b *testing.B) {
			r := s.Open(b, d, func(o *store.Options) { o.Checkpoint, o.WALFrames = p.policy, p.frames })
			x, err := d.Expectation(r.Ready)
			must(b, err)
			r.Write(b, func(ctx context.Context) (bench.Result, error) {
				return bench.Commit(ctx, r.Entities, bench.CommitConfig{Blocks: source.Rest(), Expect: x, Loop: b})
			})
		})
	}
}

// RunReorg measures one reorg an operation: a block that updates 20 entities anywhere
// in the store taken back, and another with the same keys in its place.
func RunReorg(b *testing.B, s Suite) {
	s.Each(b, firstInShort("arkiv", "arkiv-pruned"), func(b *testing.B, r *Run) {
		r.Write(b, func(ctx context.Context) (bench.Result, error) {
			reorg, err := bench.NewReorg(r.Copy, bench.ReorgConfig{Seed: seed, Payload: r.Dataset.Profile.Payload})
			must(b, err)
			res, err := reorg.Run(ctx, b)
			return res.Both, err
		})
	})
}

// RunCombined measures one commit of the base profile an operation, beside a
// client that reads by mix A as fast as it can.
func RunCombined(b *testing.B, s Suite) {
	d, source := s.mendoza(b, "arkiv")
	b.Run(s.Name(d)+"/mix=A", func(b *testing.B) {
		r := s.Open(b, d)
		x, err := d.Expectation(r.Ready)
		must(b, err)
		reads, err := mix.New(mix.A, oracle(b, source)) // of its own: it follows the blocks
		must(b, err)
		var head atomic.Uint64
		head.Store(reads.Head())
		ctx, stop := context.WithCancel(b.Context())
		var beside sync.WaitGroup
		var read bench.ReadMixConfig
		read.Mix, read.Seed, read.Head, read.For = reads, seed, head.Load, time.Hour
		var readErr error
		count := int64(0)
		start := time.Now()
		beside.Go(func() {
			out, err := bench.ReadMix(ctx, r.Entities, read)
			count, readErr = out.Count, err
		})
		r.Write(b, func(ctx context.Context) (bench.Result, error) {
			return bench.Commit(ctx, r.Entities, bench.CommitConfig{
				Blocks: followed(reads, source.Rest()), Expect: x, Loop: b,
				Observe: func(b *store.Block, _ time.Duration) { head.Store(b.Number) },
			})
		})
		stop()
		beside.Wait()
		if !errors.Is(readErr, context.Canceled) {
			must(b, readErr)
		}
		b.ReportMetric(float64(count)/time.Since(start).Seconds(), "qps")
	})
}

// followed tells a mix of each block before it is applied.
func followed(reads mix.Reads, blocks iter.Seq2[store.Block, error]) iter.Seq2[store.Block, error] {
	return func(yield func(store.Block, error) bool) {
		for b, err := range blocks {
			if err == nil {
				err = reads.Advance(&b)
			}
			if !yield(b, err) {
				return
			}
		}
	}
}

// RunInsert measures one commit of 500 rows an operation, into a table of string
// attributes alone, by its indexes and the way that rows reach the engine.
func RunInsert(b *testing.B, s Suite) {
	opts, err := s.Flags.options()
	must(b, err)
	for _, indexes := range firstInShort("6", "2", "0") {
		for _, mode := range bench.InsertModes {
			name := "engine=" + s.Engine.Name + "/indexes=" + indexes + "/mode=" + string(mode) + "/durability=" + s.Flags.durability
			b.Run(name, func(b *testing.B) {
				cfg := bench.InsertConfig{Indexes: map[string]int{"0": 0, "2": 2, "6": 6}[indexes], PerCommit: 500, Mode: mode, Seed: seed, Loop: b}
				db, err := store.Open(context.Background(), s.Engine.URL(b.TempDir()), opts)
				must(b, err)
				b.Cleanup(func() { must(b, db.Close()) })
				b.ReportAllocs()
				res, err := bench.Insert(b.Context(), db.Engine(), cfg)
				must(b, err)
				report(b, res.Metrics())
			})
		}
	}
}
