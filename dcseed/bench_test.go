package dcseed

import (
	"testing"
	"time"
)

// BenchmarkInitial makes the initial state with payloads of 10 KB.
func BenchmarkInitial(b *testing.B) { benchmarkBlocks(b, 1) }

// BenchmarkLoad makes load blocks with payloads of 10 KB.
func BenchmarkLoad(b *testing.B) { benchmarkBlocks(b, newModel(b, Config{}).FirstLoadBlock()) }

func benchmarkBlocks(b *testing.B, first uint64) {
	m := newModel(b, Config{})
	b.ReportAllocs()
	entities, i := 0, uint64(0)
	start := time.Now()
	for b.Loop() {
		block, err := m.Block(first + i%900)
		if err != nil || len(block.Ops) != 660 {
			b.Fatalf("block %d: %d operations, error %v", block.Number, len(block.Ops), err)
		}
		entities += len(block.Ops)
		i++
	}
	b.ReportMetric(float64(entities)/time.Since(start).Seconds(), "ent/s")
	b.SetBytes(660 * DefaultPayload)
}

// BenchmarkExpected answers what the seed asks at one full data centre, after a day of load.
func BenchmarkExpected(b *testing.B) {
	m := newModel(b, Config{})
	o := NewOracle(m)
	b.ReportAllocs()
	next := take(m.Reads(1, func() uint64 { return 43_200 }), 100)
	i := 0
	for b.Loop() {
		o.Expected(next[i%len(next)])
		i++
	}
}

// BenchmarkNewOracle looks at the nodes of one full data centre.
func BenchmarkNewOracle(b *testing.B) {
	m := newModel(b, Config{})
	b.ReportAllocs()
	for b.Loop() {
		NewOracle(m)
	}
}
