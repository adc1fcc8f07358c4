package dcseed

import (
	"bytes"
	"cmp"
	"iter"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/query"
)

func newModel(t testing.TB, cfg Config) *Model {
	t.Helper()
	m, err := New(cfg)
	require.NoError(t, err)
	return m
}

// small is a configuration that a test can fold in no time.
func small() Config {
	return Config{Seed: 7, DCs: 2, NodesPerDC: 30, Payload: 21, PerBlock: 50, NodeUpdates: 7, WorkloadUpdates: 40}
}

// expiring is a configuration with too few updates to keep short lives from
// ending: one of an entity every 2,000 and 5,000 blocks.
func expiring() Config {
	return Config{Seed: 3, NodesPerDC: 2_000, Payload: 1, PerBlock: 900, NodeUpdates: 1, WorkloadUpdates: 2}
}

// initial and load stream the blocks of the initial state, and so many after them.
func (m *Model) initial() iter.Seq2[entity.Block, error] { return m.Blocks(FirstBlock, m.firstLoad-1) }

func (m *Model) load(blocks uint64) iter.Seq2[entity.Block, error] {
	return m.Blocks(m.firstLoad, m.firstLoad+blocks-1)
}

// memory is a store of entities as they are after the last block applied.
type memory struct {
	t        testing.TB
	head     uint64
	digest   entity.Digest
	entities map[entity.Key]*entity.Entity
}

func newMemory(t testing.TB) *memory {
	return &memory{t: t, entities: map[entity.Key]*entity.Entity{}}
}

func (s *memory) apply(b entity.Block) {
	s.t.Helper()
	require.NoError(s.t, b.Validate())
	require.Greater(s.t, b.Number, s.head)
	prior := make(map[entity.Key]entity.Prior, len(b.Ops))
	for key := range b.Needs() {
		e := s.entities[key]
		switch {
		case e == nil:
		case e.Expiration > b.Number:
			prior[key] = entity.Prior{Live: e}
		default:
			prior[key] = entity.Prior{Expired: true}
		}
	}
	set, err := entity.Fold(&b, prior, entity.Rules{})
	require.NoError(s.t, err)
	for _, c := range set.Changes {
		if c.New == nil {
			delete(s.entities, c.Key)
		} else {
			s.entities[c.Key] = c.New
		}
	}
	s.head, s.digest = b.Number, s.digest.Next(set)
}

func (s *memory) applyAll(blocks iter.Seq2[entity.Block, error]) {
	s.t.Helper()
	for b, err := range blocks {
		require.NoError(s.t, err)
		s.apply(b)
	}
}

func (s *memory) get(key entity.Key) *entity.Entity {
	if e := s.entities[key]; e != nil && e.Expiration > s.head {
		return e
	}
	return nil
}

// ask answers by looking at everything.
func (s *memory) ask(q Query) Answer {
	if q.Kind == NodeState {
		return Answer{Entity: s.get(q.Key())}
	}
	var found []*entity.Entity
	for key := range s.entities {
		if e := s.get(key); e != nil && query.Match(q.Expr, e) {
			found = append(found, e)
		}
	}
	slices.SortFunc(found, func(a, b *entity.Entity) int {
		byAttribute := cmp.Compare(a.NumericAttributes[q.OrderBy], b.NumericAttributes[q.OrderBy])
		return cmp.Or(byAttribute, cmp.Compare(b.Sequence, a.Sequence), bytes.Compare(a.Key[:], b.Key[:]))
	})
	var answer Answer
	if q.Limit > 0 && q.Limit < len(found) {
		found = found[:q.Limit]
	}
	for _, e := range found {
		answer.Keys = append(answer.Keys, e.Key)
	}
	return answer
}

func collect(t testing.TB, blocks iter.Seq2[entity.Block, error]) []entity.Block {
	t.Helper()
	var all []entity.Block
	for b, err := range blocks {
		require.NoError(t, err)
		all = append(all, b)
	}
	return all
}

func take[T any](seq iter.Seq[T], n int) []T {
	all := make([]T, 0, n)
	for v := range seq {
		if len(all) == n {
			break
		}
		all = append(all, v)
	}
	return all
}
