package sqlite_test

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/mix"
	"github.com/varvedb/varve/bench/pace"
	"github.com/varvedb/varve/dcseed"
	"github.com/varvedb/varve/store/entity"
)

// mixStore is a store of a source with the mix over it, and the blocks to come.
type mixStore struct {
	*bench.Copy
	dataset bench.Dataset
	reads   []mix.Reads
	rest    func() (entity.Block, bool)
}

func openMendoza(t *testing.T, layout string) mixStore { return openMendozaIn(t, newCache(t), layout) }

func openMendozaIn(t *testing.T, cache *bench.Cache, layout string) mixStore {
	source, err := bench.MendozaSource(0.004, 1, 6, 0.5)
	require.NoError(t, err)
	s := openSource(t, cache, layout, source)
	oracle := mix.NewOracle()
	require.NoError(t, oracle.Follow(source.Blocks()))
	for _, name := range mix.Names {
		r, err := mix.New(name, oracle)
		require.NoError(t, err)
		s.reads = append(s.reads, r)
	}
	require.Equal(t, s.Ready.Head, oracle.Head())
	return s
}

func openCentre(t *testing.T, layout string) mixStore {
	cfg := dcseed.Config{DCs: 2, NodesPerDC: 30, Payload: 300, NodeUpdates: 4, WorkloadUpdates: 20, PerBlock: 100}
	m, err := dcseed.New(cfg)
	require.NoError(t, err)
	s := openSource(t, newCache(t), layout, bench.DataCentreSource(m))
	s.reads = []mix.Reads{mix.NewDataCentre(m, s.Ready.Head, 0)}
	return s
}

func openSource(t *testing.T, cache *bench.Cache, layout string, source *bench.Source) mixStore {
	t.Helper()
	d := bench.Dataset{Engine: suite.Engine, Layout: layout, Source: source}
	next, stop := iter.Pull2(source.Rest())
	t.Cleanup(stop)
	return mixStore{Copy: openCopy(t, cache, d), dataset: d, rest: func() (entity.Block, bool) {
		b, err, ok := next()
		require.NoError(t, err)
		return b, ok
	}}
}

// write applies the next block, which the oracle knows before the store.
func (s *mixStore) write(t *testing.T) {
	b, ok := s.rest()
	if !ok {
		return
	}
	require.NoError(t, s.reads[0].Advance(&b))
	_, err := s.Entities.Apply(t.Context(), b)
	require.NoError(t, err)
}

// eachSource runs a test on a store of each source in layouts with a history and in one without.
func eachSource(t *testing.T, test func(*testing.T, *mixStore)) {
	for _, layout := range []string{"arkiv", "arkiv-ordered", "simple"} {
		for source, open := range map[string]func(*testing.T, string) mixStore{"mendoza": openMendoza, "dc": openCentre} {
			t.Run(fmt.Sprintf("layout=%s/source=%s", layout, source), func(t *testing.T) {
				s := open(t, layout)
				test(t, &s)
			})
		}
	}
}

// Every kind of operation is answered right, at the head and in the past, while blocks are applied.
func TestMixes(t *testing.T) {
	eachSource(t, func(t *testing.T, s *mixStore) {
		for _, r := range s.reads {
			requireMix(t, s, r)
		}
	})
}

func requireMix(t *testing.T, s *mixStore, r mix.Reads) {
	reader := mix.NewReader(s.Entities)
	applied := s.Ready.Head
	stream := r.Stream(mix.StreamOptions{
		HeadOnly: !s.Entities.Temporal(), Head: func() uint64 { return applied },
	})
	random := rand.New(rand.NewPCG(1, 0))
	kinds, found, blocks := map[string]int{}, 0, map[uint64]bool{}
	for i := range 400 {
		op := stream(random)
		a, err := reader.Do(t.Context(), op)
		require.NoError(t, err)
		require.NoError(t, r.Check(op, a))
		kinds[op.Kind]++
		found += int(a.Count)
		blocks[a.Block] = true
		if i%50 == 49 {
			s.write(t)
			head, err := s.Entities.Head(t.Context())
			require.NoError(t, err)
			applied = head.Number
		}
	}
	want := map[string]int{mix.A: 6, mix.B: 7, mix.C: 6, mix.W: 5, mix.DataCentre: 5}[r.Name()]
	if !s.Entities.Temporal() && (r.Name() == mix.A || r.Name() == mix.B) {
		want-- // the share of reads in the past went to another kind
	}
	require.Len(t, kinds, want)
	require.Greater(t, found, 400)
	require.Greater(t, len(blocks), 5)
}

// A store with other rows is found.
func TestMixFindsTampering(t *testing.T) {
	cache := newCache(t)
	for name, statement := range map[string]string{
		"payload":    "UPDATE payloads SET payload = zeroblob(length(payload))",
		"attributes": `UPDATE payloads SET string_attributes = replace(string_attributes, '"type":"', '"type":"x')`,
		"postings":   "DELETE FROM string_attributes WHERE key = 'type'",
		"end":        "UPDATE payloads SET to_block = from_block + 1",
	} {
		t.Run(name, func(t *testing.T) {
			s := openMendozaIn(t, cache, "arkiv")
			exec(t, s.Copy, statement)
			require.ErrorIs(t, askMix(t, &s, s.reads[2], 500), mix.ErrMismatch)
		})
	}
}

func askMix(t *testing.T, s *mixStore, r mix.Reads, times int) error {
	reader := mix.NewReader(s.Entities)
	head, err := s.Entities.Head(t.Context())
	require.NoError(t, err)
	stream := r.Stream(mix.StreamOptions{HeadOnly: !s.Entities.Temporal(), Head: func() uint64 { return head.Number }})
	random := rand.New(rand.NewPCG(1, 0))
	for range times {
		op := stream(random)
		a, err := reader.Do(t.Context(), op)
		if err == nil {
			err = r.Check(op, a)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// A data set of a part of a source can be continued with the rest of it, each
// digest checked.
func TestCommitRestOfSource(t *testing.T) {
	eachSource(t, func(t *testing.T, s *mixStore) {
		x, err := s.dataset.Expectation(s.Ready)
		require.NoError(t, err)
		res, err := bench.Commit(t.Context(), s.Entities, bench.CommitConfig{
			Blocks: s.dataset.Source.Rest(), Expect: x, Config: pace.Config{N: 20},
		})
		require.NoError(t, res.Checked(t.Context(), err))
		require.Positive(t, res.Entities)
	})
}
