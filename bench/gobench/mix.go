package gobench

import (
	"cmp"
	"fmt"
	"testing"
	"time"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/mix"
	"github.com/varvedb/varve/bench/pace"
	"github.com/varvedb/varve/bench/row"
	"github.com/varvedb/varve/dcseed"
	"github.com/varvedb/varve/internal/coreset"
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
func (s Suite) mendoza(b *testing.B, layout string) bench.Dataset {
	b.Helper()
	source, err := bench.MendozaSource(float64(s.Flags.size())/mendozaEntities/mendozaShare, seed, mendozaPerBlock, mendozaShare)
	must(b, err)
	return bench.Dataset{Engine: s.Engine, Layout: layout, Profile: bench.Profile{Name: "mendoza"}, Source: source}
}

// oracle knows the answers on a data set.
func oracle(b *testing.B, d bench.Dataset) *mix.Oracle {
	b.Helper()
	o := mix.NewOracle()
	must(b, o.Follow(d.Source.Blocks()))
	return o
}

// RunReadMix measures one read of the mixes of the user's documents an
// operation, with 1 client and with 10 and 100, which the core set leaves out. With -v
// it tells each kind of read.
func RunReadMix(b *testing.B, s Suite) {
	clients := []int{1, 10, 100}
	if coreset.Only() {
		clients = clients[:1]
	}
	d := s.mendoza(b, "")
	known := oracle(b, d)
	s.eachLayout(b, d, compared("arkiv-ordered", "simple"), func(b *testing.B, d bench.Dataset) {
		for _, n := range clients {
			r := s.Open(b, d, func(o *store.Options) { o.Readers = cmp.Or(o.Readers, min(n, driver.DefaultReaders)) })
			for _, name := range []string{mix.A, mix.B, mix.C} {
				reads, err := mix.New(name, known)
				must(b, err)
				b.Run(fmt.Sprintf("mix=%s/clients=%d", name, n), func(b *testing.B) { r.mix(b, reads, n) })
			}
			must(b, r.Close())
		}
	})
}

func (r *Run) mix(b *testing.B, reads mix.Reads, clients int) {
	out, err := bench.ReadMix(b.Context(), r.Entities, bench.ReadMixConfig{Mix: reads, Config: pace.Config{Workers: clients, Seed: seed, More: b.Loop}})
	if err == nil && testing.Verbose() {
		for _, k := range out.Kinds {
			l := k.Latency
			b.Logf("%s: %d reads, mean %v, p50 %v, p95 %v, p99 %v, max %v", k.Name, l.Count(),
				l.Total()/time.Duration(max(l.Count(), 1)), l.Quantile(50), l.Quantile(95), l.Quantile(99), l.Max())
		}
	}
	Report(b)(bench.Result{Latency: out.All(), More: []bench.Metric{{Value: out.Capacity(), Unit: "qps"}}}, err)
}

// RunDataCentre measures one question of a data centre's scheduler an operation.
func RunDataCentre(b *testing.B, s Suite) {
	coreset.Skip(b)
	nodes := max(s.Flags.size()/6, 100)
	cfg := dcseed.Config{DCs: 1, NodesPerDC: nodes, WorkloadsPerDC: nodes * 5, Payload: 1 << 10, Seed: seed}
	source, err := bench.DataCentreSource(cfg, 0)
	must(b, err)
	model, err := dcseed.New(cfg)
	must(b, err)
	reads := mix.NewDataCentre(model, model.FirstLoadBlock()-1, 100)
	d := bench.Dataset{Profile: bench.Profile{Name: "dc"}, Source: source}
	s.eachLayout(b, d, firstInShort("arkiv", "compact"), func(b *testing.B, d bench.Dataset) { s.Open(b, d).mix(b, reads, 1) })
}

// policies say who runs checkpoints, and at which size of the log. The first two are of
// the core set.
var policies = []struct {
	name   string
	policy driver.CheckpointPolicy
	frames int
}{
	{"inline-1000", driver.Inline, 1000}, {"background-4000", driver.Background, 4000},
	{"inline-10000", driver.Inline, 10_000}, {"manual", driver.Manual, 0},
}

// RunCheckpoint measures one commit of the base profile an operation, by who runs
// checkpoints and at which size of the log.
func RunCheckpoint(b *testing.B, s Suite) {
	if !s.driver(b).Capabilities.WALCheckpoint {
		b.Skip("the engine's checkpoints cannot be chosen")
	}
	chosen := policies
	if coreset.Only() {
		chosen = policies[:2]
	}
	d := s.mendoza(b, "arkiv")
	for _, p := range chosen {
		b.Run(s.Name(d)+"/policy="+p.name, func(b *testing.B) {
			r := s.Open(b, d, func(o *store.Options) { o.Checkpoint, o.WALFrames = p.policy, p.frames })
			r.Commit(b, bench.CommitConfig{Blocks: d.Source.Rest()})
		})
	}
}

// RunReorg measures one reorg an operation: a block that updates 20 entities anywhere
// in the store taken back, and another with the same keys in its place.
func RunReorg(b *testing.B, s Suite) {
	coreset.Skip(b)
	s.Each(b, firstInShort("arkiv", "arkiv-pruned"), func(b *testing.B, r *Run) {
		reorg, err := bench.NewReorg(r.Copy, bench.ReorgConfig{Seed: seed, Payload: r.Dataset.Profile.Payload})
		must(b, err)
		done := r.Write(b)
		res, err := reorg.Run(b.Context(), b)
		done(res.Both, err)
	})
}

// RunCombined measures one commit of the base profile an operation, beside a
// client that reads by mix A as fast as it can.
func RunCombined(b *testing.B, s Suite) {
	coreset.Skip(b)
	d := s.mendoza(b, "arkiv")
	b.Run(s.Name(d)+"/mix=A", func(b *testing.B) {
		r := s.Open(b, d)
		x, err := d.Expectation(r.Ready)
		must(b, err)
		reads, err := mix.New(mix.A, oracle(b, d)) // of its own: it follows the blocks
		must(b, err)
		done := r.Write(b)
		wrote, read, err := bench.Combined(b.Context(), r.Entities,
			bench.CommitConfig{Blocks: d.Source.Rest(), Expect: x, Loop: b}, bench.ReadMixConfig{Mix: reads, Config: pace.Config{Seed: seed}})
		done(bench.Result{
			Latency: wrote.All(), Entities: wrote.Entities, Rows: wrote.Rows,
			More: []bench.Metric{{Value: read.Rate(), Unit: "qps"}},
		}, err)
	})
}

// RunInsert measures one commit of 500 rows an operation, into a table of string
// attributes alone, by its indexes and the way that rows reach the engine.
func RunInsert(b *testing.B, s Suite) {
	coreset.Skip(b)
	for _, indexes := range firstInShort(6, 2, 0) {
		for _, mode := range row.Modes {
			b.Run(fmt.Sprintf("engine=%s/indexes=%d/mode=%s/durability=%s", s.Engine.Name, indexes, mode, s.Flags.durability), func(b *testing.B) {
				db := s.openAt(b, b.TempDir(), 0)
				Report(b)(row.Insert(b.Context(), db, row.Config{Indexes: indexes, PerCommit: 500, Mode: mode, Seed: seed, Loop: b}))
			})
		}
	}
}
