package pace

import (
	"context"
	"flag"
	"testing"
	"time"
)

// all asks for benchmarks of the harness itself, beside those of engines.
var all = flag.Bool("varve.all", false, "everything that the pattern of -bench matches, and not the core set alone")

func skip(b *testing.B) {
	b.Helper()
	if !*all {
		b.Skip("not in the core set: -varve.all measures it")
	}
}

// BenchmarkRecord is the price of an operation's sample: a latency, a lag
// and the timeline.
func BenchmarkRecord(b *testing.B) {
	skip(b)
	out := newOutcome(time.Now(), true)
	s := sample{kind: "commit", scheduled: 1, started: 20}
	b.ReportAllocs()
	for b.Loop() {
		s.scheduled += 1000
		s.started, s.ended = s.scheduled+20, s.scheduled+s.scheduled%(1<<20)
		out.add(&s, 0)
	}
}

func noop(context.Context, *Step) error { return nil }

func BenchmarkClosedLoopNoop(b *testing.B) {
	skip(b)
	b.ReportAllocs()
	out, err := Loop(b.Context(), Config{N: int64(b.N)}, noop)
	report(b, out, err)
}

func BenchmarkClosedLoopNoopClients(b *testing.B) {
	skip(b)
	b.ReportAllocs()
	out, err := Loop(b.Context(), Config{N: int64(b.N), Workers: 8}, noop)
	report(b, out, err)
}

// BenchmarkOpenLoopNoop has everything arrive at once.
func BenchmarkOpenLoopNoop(b *testing.B) {
	skip(b)
	b.ReportAllocs()
	out, err := Loop(b.Context(), Config{Arrivals: Fixed(1e9), N: int64(b.N)}, noop)
	report(b, out, err)
}

// BenchmarkOpenLoopWait tells what starts are late by at a rate that a worker
// has no trouble with, in µs.
func BenchmarkOpenLoopWait(b *testing.B) {
	skip(b)
	out, err := Loop(b.Context(), Config{Arrivals: Poisson(1000, 1), N: int64(b.N), Workers: 4}, noop)
	report(b, out, err)
	b.ReportMetric(float64(out.Lag.Quantile(50).Microseconds()), "lag-p50-µs")
	b.ReportMetric(float64(out.Lag.Quantile(99).Microseconds()), "lag-p99-µs")
}

func report(b *testing.B, out *Outcome, err error) {
	if err != nil || out.Count != int64(b.N) {
		b.Fatal(out.Count, err)
	}
	b.ReportMetric(out.Rate(), "ops/s")
}
