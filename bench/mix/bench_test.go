package mix_test

import (
	"flag"
	"iter"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/mix"
	"github.com/varvedb/varve/dcseed"
	"github.com/varvedb/varve/scaler"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/storetest/model"
)

// all asks for benchmarks of the harness itself, beside those of engines.
var all = flag.Bool("varve.all", false, "everything that the pattern of -bench matches, and not the core set alone")

func skip(b *testing.B) {
	b.Helper()
	if !*all {
		b.Skip("not in the core set: -varve.all measures it")
	}
}

// benchScale is 16,000 entities.
const benchScale = 0.02

// large returns few blocks, so that the model has few states to keep.
func large() iter.Seq2[store.Block, error] {
	return bench.Merged(scaler.Stream(scaler.Mendoza(), scaler.Options{Scale: benchScale, Seed: 1}), 2000)
}

// BenchmarkDraw draws an operation.
func BenchmarkDraw(b *testing.B) {
	skip(b)
	for _, r := range benchReads(b) {
		b.Run("mix="+r.Name(), func(b *testing.B) {
			s, from := r.Stream(mix.StreamOptions{}), random(0)
			b.ReportAllocs()
			for b.Loop() {
				s(from)
			}
		})
	}
}

// BenchmarkCheck compares a right answer with what the oracle knows.
func BenchmarkCheck(b *testing.B) {
	skip(b)
	held := &model.Model{}
	for blk, err := range large() {
		require.NoError(b, err)
		require.NoError(b, held.Apply(blk))
	}
	dc, nodes := centre(b, 20)
	models := map[string]*model.Model{mix.A: held, mix.B: held, mix.C: held, mix.W: held, mix.DataCentre: nodes}
	for _, r := range append(benchReads(b)[:len(mix.Names)], mix.NewDataCentre(dc, nodes.Head().Block, 0)) {
		b.Run("mix="+r.Name(), func(b *testing.B) {
			s, from := r.Stream(mix.StreamOptions{}), random(0)
			ops, answers := make([]mix.Op, 200), make([]mix.Answer, 200)
			for i := range ops {
				ops[i] = s(from)
				answers[i] = ask(b, models[r.Name()], ops[i])
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if err := r.Check(ops[i%len(ops)], answers[i%len(ops)]); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func benchReads(b *testing.B) []mix.Reads {
	o := mix.NewOracle()
	require.NoError(b, o.Follow(large()))
	var all []mix.Reads
	for _, name := range mix.Names {
		r, err := mix.New(name, o)
		require.NoError(b, err)
		all = append(all, r)
	}
	m, err := dcseed.New(dcseed.Config{NodesPerDC: 1000})
	require.NoError(b, err)
	return append(all, mix.NewDataCentre(m, m.FirstLoadBlock(), 0))
}

// BenchmarkFollow follows 16,000 entities, generated with their payloads.
func BenchmarkFollow(b *testing.B) {
	skip(b)
	var blocks []store.Block
	entities := 0.0
	for blk, err := range large() {
		require.NoError(b, err)
		blocks = append(blocks, blk)
		for i := range blk.Ops {
			if blk.Ops[i].Kind == store.Create {
				entities++
			}
		}
	}
	var o *mix.Oracle
	var before, after runtime.MemStats
	for b.Loop() {
		b.StopTimer()
		o = nil //nolint:ineffassign // so that the last one is collected before memory is read
		runtime.GC()
		runtime.ReadMemStats(&before)
		o = mix.NewOracle()
		b.StartTimer()
		for i := range blocks {
			if err := o.Advance(&blocks[i]); err != nil {
				b.Fatal(err)
			}
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/entities, "B/ent")
	b.ReportMetric(entities*float64(b.N)/b.Elapsed().Seconds(), "ent/s")
	runtime.KeepAlive(o)
	runtime.KeepAlive(blocks)
}
