package gobench

import (
	"context"
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/social"
	"github.com/varvedb/varve/internal/coreset"
	"github.com/varvedb/varve/schemas"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
)

// CheckSocial holds an engine against the oracle: every kind of question on a small
// graph in which people have blocked each other, then questions beside writes to
// the same few objects. It ends by taking a relationship away behind the oracle's
// back, which must be seen.
func CheckSocial(t *testing.T, engine bench.Engine) {
	s := fillSocial(t, engine, t.TempDir(), social.Config{Relationships: social.MinRelationships, Seed: 1, Blocks: 3}, 4)
	tally, err := social.Sample(t.Context(), s.Store, s.oracle, 300, 1)
	must(t, err)
	for k := range tally.Yes {
		if tally.Yes[k] == 0 || tally.No[k] == 0 {
			t.Errorf("of %s %d were seen and %d not", social.Kind(k), tally.Yes[k], tally.No[k])
		}
	}
	for _, staleness := range []time.Duration{0, 20 * time.Millisecond} {
		script := socialScript(staleness)
		out, err := social.Run(t.Context(), s.Store, s.oracle, social.RunConfig{Script: script, Phase: script.Phases[0], Seed: 1})
		must(t, err)
		must(t, out.FirstError)
		require.Equal(t, out.Scheduled, out.Count)
		require.NotNil(t, out.Merged("write"))
		require.NotNil(t, out.Merged("check"))
	}
	require.Positive(t, s.oracle.Point())
	must(t, s.Verify(t.Context(), s.oracle))
	requireSeen(t, s)
}

// socialScript has few objects and many writes.
func socialScript(staleness time.Duration) *social.Script {
	s := &social.Script{
		Name: "test", Phases: []social.Phase{{Rate: 500, Duration: 700 * time.Millisecond}},
		Connections: 4, Poisson: true, Active: 0.25, Staleness: staleness, GiveUp: time.Minute,
	}
	for k := range social.Interaction + 1 {
		s.Steps = append(s.Steps, social.Step{Weight: 1, Check: k.String()})
	}
	for _, t := range social.Toggles {
		s.Steps = append(s.Steps, social.Step{Weight: 0.5, Write: t})
	}
	s.Steps = append(s.Steps, social.Step{Weight: 0.3, Lookup: "content", Limit: 20}, social.Step{Weight: 0.3, Lookup: "subjects"})
	return s
}

// requireSeen takes the ownership of a piece of content away.
func requireSeen(t *testing.T, s socialStore) {
	ctx, content, owner := t.Context(), social.NewObject(social.Content, 7), social.Object(0)
	for r := range s.graph.Relationships() {
		if r.Object == content && r.Relation == social.Owner {
			owner = r.Subject
		}
	}
	text, err := schemas.SocialGraph(string(s.db.Engine().Info().Dialect))
	must(t, err)
	tx, err := s.db.Engine().Begin(ctx)
	must(t, err)
	n, err := tx.Exec(ctx, text.Statements["delete"], int64(content), int64(social.Owner), int64(owner))
	must(t, err)
	require.EqualValues(t, 1, n)
	must(t, tx.Commit(ctx))
	require.ErrorIs(t, s.Verify(ctx, s.oracle), bench.ErrMismatch)
	v, err := s.View(ctx, s.oracle)
	must(t, err)
	defer v.Close()
	may, err := v.Check(ctx, owner, content)
	must(t, err)
	require.ErrorIs(t, s.oracle.JudgeCheck(v.Span, owner, content, may), bench.ErrMismatch)
	list, err := v.LookupContent(ctx, owner, content, 1)
	must(t, err)
	require.ErrorIs(t, s.oracle.JudgeContent(v.Span, owner, content, 1, list), bench.ErrMismatch)
}

// socialStore is a store that holds a graph.
type socialStore struct {
	*social.Store
	db     *store.DB
	graph  *social.Graph
	oracle *social.Oracle
}

// fillSocial returns a store of a graph that is closed when the test ends.
func fillSocial(tb testing.TB, engine bench.Engine, dir string, cfg social.Config, readers int) (s socialStore) {
	tb.Helper()
	var err error
	s.graph, err = social.New(cfg)
	must(tb, err)
	s.oracle = social.NewOracle(s.graph)
	ctx := context.Background() // the test's ends before its clean-up
	s.db, err = social.Open(ctx, engine, dir, &store.Options{Durability: durability(), Readers: readers})
	must(tb, err)
	tb.Cleanup(func() { must(tb, s.db.Close()) })
	s.Store, err = social.NewStore(s.db)
	must(tb, err)
	must(tb, s.Load(ctx, s.graph))
	return s
}

// socialDir returns a directory on the disk of the data sets until the benchmark
// ends. The temporary directory may be in memory.
func socialDir(b *testing.B) string {
	cache, err := bench.OpenCache("")
	must(b, err)
	run, err := cache.NewRun(context.Background())
	must(b, err)
	b.Cleanup(func() { must(b, run.Remove()) })
	return run.Data()
}

// durability is that of the benchmarks' own flag.
func durability() driver.Durability {
	if f := flag.Lookup("varve.durability"); f != nil {
		return driver.Durability(f.Value.String())
	}
	return driver.Durable
}

// SocialFlags are what the benchmarks of the social graph can be told.
type SocialFlags struct {
	relationships int
	rate          float64
	duration      time.Duration
}

// RegisterSocialFlags adds the flags, which begin with "varve.social-", to a set.
func RegisterSocialFlags(set *flag.FlagSet) *SocialFlags {
	f := new(SocialFlags)
	set.IntVar(&f.relationships, "varve.social-relationships", 20_000, "relationships of the social graph")
	set.Float64Var(&f.rate, "varve.social-qps", 500, "requests a second of the social load")
	set.DurationVar(&f.duration, "varve.social-duration", time.Second, "length of the social load")
	return f
}

// RunSocial measures the default script, an operation being a run of the
// flags' length at their rate, and single checks of each kind on the same store.
func RunSocial(b *testing.B, engine bench.Engine, f *SocialFlags) {
	coreset.Skip(b)
	script, err := social.LoadScript(social.DefaultScript)
	must(b, err)
	script.WarmUp = min(script.WarmUp, f.duration/4)
	script.Phases = []social.Phase{{Rate: f.rate, Duration: f.duration}}
	s := fillSocial(b, engine, socialDir(b), social.Config{Relationships: f.relationships, Seed: 1}, script.Connections)
	name := fmt.Sprintf("engine=%s/relationships=%d/durability=%s", engine.Name, f.relationships, durability())
	b.Run(fmt.Sprintf("%s/qps=%v", name, f.rate), func(b *testing.B) { runSocialLoad(b, s, script) })
	for _, k := range []social.Kind{social.User, social.Content, social.Interaction} {
		b.Run(fmt.Sprintf("%s/check=%s", name, k), func(b *testing.B) { runSocialChecks(b, s, k) })
	}
}

func runSocialLoad(b *testing.B, s socialStore, script *social.Script) {
	var all *social.Outcome
	seed := uint64(0)
	for b.Loop() {
		seed++
		out, err := social.Run(b.Context(), s.Store, s.oracle, social.RunConfig{Script: script, Phase: script.Phases[0], Seed: seed})
		must(b, err)
		must(b, out.FirstError)
		if all == nil {
			all = out
		} else {
			all.Merge(out.Outcome)
		}
	}
	must(b, s.Verify(b.Context(), s.oracle))
	b.ReportMetric(all.Rate(), "qps")
	b.ReportMetric(all.Success(), "share-success")
	for _, word := range []string{"check", "write"} {
		if rec := all.Merged(word); rec != nil {
			report(b, []bench.Metric{milliseconds(rec.Quantile(50), word+"-p50-ms"), milliseconds(rec.Quantile(95), word+"-p95-ms")})
		}
	}
}

func runSocialChecks(b *testing.B, s socialStore, k social.Kind) {
	b.ReportAllocs()
	rec, err := social.Checks(b.Context(), s.Store, s.oracle, k, b)
	must(b, err)
	report(b, []bench.Metric{
		milliseconds(rec.Quantile(50), "p50-ms"), milliseconds(rec.Quantile(95), "p95-ms"), milliseconds(rec.Quantile(99), "p99-ms"),
	})
}
