package scaler

import (
	"iter"
	"testing"

	"github.com/varvedb/varve/store/entity"
)

// BenchmarkStream generates 8,000 entities of the base profile with 5 KB each.
func BenchmarkStream(b *testing.B) {
	b.Run("profile=mendoza", func(b *testing.B) {
		o := Options{Scale: 0.01, Seed: 1}
		plan, err := Plan(Mendoza(), o)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		b.SetBytes(int64(plan.PayloadRowBytes))
		for b.Loop() {
			drain(b, Stream(Mendoza(), o), plan.Entities)
		}
		b.ReportMetric(float64(plan.Entities)*float64(b.N)/b.Elapsed().Seconds(), "ent/s")
	})
}

// BenchmarkPlan computes the totals of a million entities.
func BenchmarkPlan(b *testing.B) {
	b.Run("profile=mendoza", func(b *testing.B) {
		for b.Loop() {
			if p, err := Plan(Mendoza(), Options{Scale: 1.25}); err != nil || p.Entities != 1_000_000 {
				b.Fatal(p.Entities, err)
			}
		}
	})
}

// BenchmarkScale copies blocks that are in memory, 8,000 entities four times.
func BenchmarkScale(b *testing.B) {
	var blocks []entity.Block
	for block, err := range Stream(Mendoza(), Options{Scale: 0.01, Seed: 1}) {
		if err != nil {
			b.Fatal(err)
		}
		blocks = append(blocks, block)
	}
	b.ReportAllocs()
	for b.Loop() {
		drain(b, Scale(source(blocks...), ScaleOptions{Factor: 5}), 40_000)
	}
	b.ReportMetric(40_000*float64(b.N)/b.Elapsed().Seconds(), "ent/s")
}

func drain(b *testing.B, blocks iter.Seq2[entity.Block, error], want uint64) {
	var created uint64
	for block, err := range blocks {
		if err != nil {
			b.Fatal(err)
		}
		for i := range block.Ops {
			if block.Ops[i].Kind == entity.Create {
				created++
			}
		}
	}
	if created != want {
		b.Fatalf("%d entities, want %d", created, want)
	}
}
