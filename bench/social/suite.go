package social

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/latency"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
)

// RunTest holds an engine against the oracle: every kind of question on a small
// graph in which people have blocked each other, then questions beside writes to
// the same few objects. It ends by taking a relationship away behind the oracle's
// back, which must be seen.
func RunTest(t *testing.T, engine bench.Engine) {
	s, o := newTestStore(t, engine, t.TempDir(), Config{Relationships: MinRelationships, Seed: 1, Blocks: 3}, 4)
	tally, err := Sample(t.Context(), s, o, 300, 1)
	require.NoError(t, err)
	for k := range kinds {
		require.NotZero(t, tally.Yes[k], "no %s was seen", k)
		require.NotZero(t, tally.No[k], "every %s was seen", k)
	}
	for _, staleness := range []time.Duration{0, 20 * time.Millisecond} {
		script := testScript(staleness)
		out, err := Run(t.Context(), s, o, RunConfig{Script: script, Phase: script.Phases[0], Seed: 1})
		require.NoError(t, err)
		require.NoError(t, out.FirstError)
		require.Equal(t, out.Scheduled, out.Count)
		require.NotNil(t, out.Merged("write"))
		require.NotNil(t, out.Merged("check"))
	}
	require.Positive(t, o.Point())
	require.NoError(t, s.Verify(t.Context(), o))
	requireSeen(t, s, o)
}

// testScript has few objects and many writes.
func testScript(staleness time.Duration) *Script {
	s := &Script{
		Name: "test", Phases: []Phase{{Rate: 500, Duration: 700 * time.Millisecond}},
		Connections: 4, Poisson: true, Active: 0.25, Staleness: staleness, GiveUp: time.Minute,
	}
	for _, k := range kindNames {
		s.Steps = append(s.Steps, Step{Weight: 1, Check: k})
	}
	for _, t := range Toggles {
		s.Steps = append(s.Steps, Step{Weight: 0.5, Write: t})
	}
	s.Steps = append(s.Steps, Step{Weight: 0.3, Lookup: lookupContent, Limit: 20}, Step{Weight: 0.3, Lookup: lookupSubjects})
	return s
}

// requireSeen takes the ownership of a piece of content away.
func requireSeen(t *testing.T, s *Store, o *Oracle) {
	content := NewObject(Content, 7)
	owner := o.ownerOf(content)
	err := s.inTx(t.Context(), func(ctx context.Context, tx driver.Tx) error {
		return s.apply(ctx, tx, []Change{{Relationship: Relationship{content, Owner, owner}}})
	})
	require.NoError(t, err)
	require.ErrorIs(t, s.Verify(t.Context(), o), ErrMismatch)
	v, err := s.View(t.Context(), o)
	require.NoError(t, err)
	defer v.Close()
	may, err := v.Check(t.Context(), owner, content)
	require.NoError(t, err)
	require.ErrorIs(t, o.JudgeCheck(v.Span, owner, content, may), ErrMismatch)
	require.ErrorIs(t, lookups(t.Context(), v, o, owner, content, 1), ErrMismatch)
}

// newTestStore returns a store that holds a graph until the test ends.
func newTestStore(t testing.TB, engine bench.Engine, dir string, cfg Config, readers int) (*Store, *Oracle) {
	t.Helper()
	g, err := New(cfg)
	require.NoError(t, err)
	ctx := context.Background() // the test's ends before its clean-up
	opts := &store.Options{Durability: durability(), Readers: readers}
	db, err := Open(ctx, engine, dir, opts)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	s, err := NewStore(db)
	require.NoError(t, err)
	require.NoError(t, s.Load(ctx, g))
	return s, NewOracle(g)
}

// runDir returns a directory on the disk of the data sets until the benchmark
// ends. The temporary directory may be in memory.
func runDir(b *testing.B) string {
	cache, err := bench.OpenCache("")
	require.NoError(b, err)
	run, err := cache.NewRun(context.Background())
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, run.Remove()) })
	return run.Data()
}

// durability is that of the benchmarks' own flag.
func durability() driver.Durability {
	if f := flag.Lookup("varve.durability"); f != nil {
		return driver.Durability(f.Value.String())
	}
	return driver.Durable
}

// Flags are what the benchmarks of the social graph can be told.
type Flags struct {
	relationships int
	rate          float64
	duration      time.Duration
}

// RegisterFlags adds the flags, which begin with "varve.social-", to a set.
func RegisterFlags(set *flag.FlagSet) *Flags {
	f := new(Flags)
	set.IntVar(&f.relationships, "varve.social-relationships", 20_000, "relationships of the social graph")
	set.Float64Var(&f.rate, "varve.social-qps", 500, "requests a second of the social load")
	set.DurationVar(&f.duration, "varve.social-duration", time.Second, "length of the social load")
	return f
}

// RunBenchmarks measures the default script, an operation being a run of the
// flags' length at their rate, and single checks of each kind on the same store.
func RunBenchmarks(b *testing.B, engine bench.Engine, f *Flags) {
	script, err := LoadScript(DefaultScript)
	require.NoError(b, err)
	script.WarmUp = min(script.WarmUp, f.duration/4)
	script.Phases = []Phase{{Rate: f.rate, Duration: f.duration}}
	s, o := newTestStore(b, engine, runDir(b), Config{Relationships: f.relationships, Seed: 1}, script.Connections)
	name := fmt.Sprintf("engine=%s/relationships=%d/durability=%s", engine.Name, f.relationships, durability())
	b.Run(fmt.Sprintf("%s/qps=%v", name, f.rate), func(b *testing.B) { runLoad(b, s, o, script) })
	for k := range kinds {
		b.Run(fmt.Sprintf("%s/check=%s", name, k), func(b *testing.B) { runChecks(b, s, o, k) })
	}
}

func runLoad(b *testing.B, s *Store, o *Oracle, script *Script) {
	var all *Outcome
	seed := uint64(0)
	for b.Loop() {
		seed++
		out, err := Run(b.Context(), s, o, RunConfig{Script: script, Phase: script.Phases[0], Seed: seed})
		require.NoError(b, err)
		require.NoError(b, out.FirstError)
		if all == nil {
			all = out
		} else {
			all.Merge(out.Outcome)
		}
	}
	require.NoError(b, s.Verify(b.Context(), o))
	b.ReportMetric(all.Rate(), "qps")
	b.ReportMetric(all.Success(), successUnit)
	for _, word := range []string{"check", "write"} {
		if rec := all.Merged(word); rec != nil {
			b.ReportMetric(milliseconds(rec.Quantile(50)), word+"-p50-ms")
			b.ReportMetric(milliseconds(rec.Quantile(95)), word+"-p95-ms")
		}
	}
}

// runChecks asks one check after the other, each on a view of its own, whose
// opening and closing are in the latency.
func runChecks(b *testing.B, s *Store, o *Oracle, k Kind) {
	rec, r, all := latency.NewRecorder(), rand.New(rand.NewPCG(1, uint64(k))), newActive(o.g, 1)
	b.ReportAllocs()
	for b.Loop() {
		viewer, object := all.pick(r, User), all.pick(r, k)
		start := time.Now()
		v, err := s.View(b.Context(), o)
		require.NoError(b, err)
		may, err := v.Check(b.Context(), viewer, object)
		require.NoError(b, err)
		require.NoError(b, v.Close())
		rec.Record(time.Since(start))
		require.NoError(b, o.JudgeCheck(v.Span, viewer, object, may))
	}
	b.ReportMetric(milliseconds(rec.Quantile(50)), "p50-ms")
	b.ReportMetric(milliseconds(rec.Quantile(95)), "p95-ms")
	b.ReportMetric(milliseconds(rec.Quantile(99)), "p99-ms")
}
