package scaler

import (
	"iter"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store/entity"
)

// ledger folds blocks in memory, as a store does.
type ledger struct {
	entities map[entity.Key]*entity.Entity
	digest   entity.Digest
	rules    entity.Rules
}

func newLedger() *ledger { return &ledger{entities: map[entity.Key]*entity.Entity{}} }

func (l *ledger) apply(b *entity.Block) error {
	if err := b.Validate(); err != nil {
		return err
	}
	prior := map[entity.Key]entity.Prior{}
	for key := range b.Needs() {
		switch e := l.entities[key]; {
		case e == nil:
		case e.Expiration > b.Number:
			prior[key] = entity.Prior{Live: e}
		default:
			prior[key] = entity.Prior{Expired: true}
		}
	}
	set, err := entity.Fold(b, prior, l.rules)
	if err != nil {
		return err
	}
	for _, c := range set.Changes {
		if c.New == nil {
			delete(l.entities, c.Key)
		} else {
			l.entities[c.Key] = c.New
		}
	}
	l.digest = l.digest.Next(set)
	return nil
}

// live counts the entities visible at a block.
func (l *ledger) live(block uint64) (n uint64) {
	for _, e := range l.entities {
		if e.Expiration > block {
			n++
		}
	}
	return n
}

// fold applies a stream whose blocks must rise.
func fold(t require.TestingT, blocks iter.Seq2[entity.Block, error]) *ledger {
	l := newLedger()
	var last uint64
	for b, err := range blocks {
		require.NoError(t, err)
		require.Greater(t, b.Number, last, "blocks rise")
		require.NoError(t, l.apply(&b))
		last = b.Number
	}
	return l
}

func collect(t require.TestingT, blocks iter.Seq2[entity.Block, error]) []entity.Block {
	var all []entity.Block
	for b, err := range blocks {
		require.NoError(t, err)
		all = append(all, b)
	}
	return all
}

// source is a Source of blocks in memory.
func source(blocks ...entity.Block) Source {
	return func() iter.Seq2[entity.Block, error] {
		return func(yield func(entity.Block, error) bool) {
			for _, b := range blocks {
				if !yield(b, nil) {
					return
				}
			}
		}
	}
}

// tiny is a profile with every feature and small payloads, for tests that make many streams.
func tiny() Profile {
	short := Histogram{{500, 1, 10}, {500, 11, 60}}
	small := Histogram{{1000, MinPayload, 100}}
	json := []Choice{{"application/json", 1}}
	return Profile{
		Name: "tiny", CycleBlocks: 30, Cycles: 10, Batches: Histogram{{700, 1, 1}, {300, 2, 8}},
		Kinds: []Kind{
			{Name: "item", Count: 7, Runs: Histogram{{1000, 1, 4}}, Accounts: Accounts{0, 3},
				Fate: Fate{Persistent: 1, Ephemeral: 2, Deleted: 1, Lifetime: short, DeletedAfter: short},
				Steps: []Step{{entity.ExtendBTL, 300, short}, {entity.Update, 500, short},
					{entity.ChangeOwner, 500, short}, {entity.Update, 500, short}},
				Payload: Payload{Types: json, Size: small, Form: Document},
				Texts: []Text{{Name: "id", Source: Serial, Prefix: "item-"}, {Name: "next", Source: Next},
					{Name: "parent", Source: ID, Of: "group"}, {Name: "parentKey", Source: Key, Of: "group", Window: 4, Hot: 300},
					{Name: "color", Values: []Choice{{"red", 1}, {"blue", 3}}, Later: []Choice{{"green", 1}}}},
				Numbers: []Number{{Name: "n", Values: short, Varies: true}, {Name: "at", Source: Clock}, {Name: "pos", Source: Position}},
			},
			{Name: "group", Count: 2, Runs: Histogram{{1000, 1, 1}}, Accounts: Accounts{0, 3}, Fate: Fate{Persistent: 1},
				Payload: Payload{Types: json, Size: small},
				Texts:   []Text{{Name: "id", Source: Serial, Prefix: "group-", Digits: 3}}},
		},
	}
}

// created returns the values of an attribute that names an entity, and the keys,
// of all entities that a stream creates.
func created(t require.TestingT, blocks iter.Seq2[entity.Block, error], attribute string) (ids map[string]bool, keys map[string]bool) {
	ids, keys = map[string]bool{}, map[string]bool{}
	for b, err := range blocks {
		require.NoError(t, err)
		for _, op := range b.Ops {
			if op.Kind == entity.Create {
				require.False(t, keys[op.Key.String()], "a key is used once")
				keys[op.Key.String()] = true
				if id, ok := op.StringAttributes[attribute]; ok {
					require.False(t, ids[id], "an id is used once")
					ids[id] = true
				}
			}
		}
	}
	return ids, keys
}
