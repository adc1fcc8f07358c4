package crashtest

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/query"
	"github.com/varvedb/varve/store/storetest/model"
)

// entityKeys is how many entities there are at most: few, so that each changes
// again and again and what a merge has half done matters.
const entityKeys = 48

// newRand returns the generator of a seed.
func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15)) }

// drawBlock draws a valid block to come after the model's head.
func drawBlock(rng *rand.Rand, m *model.Model) (entity.Block, error) {
	head := m.Head()
	b := entity.Block{Number: head.Number + 1 + uint64(rng.IntN(3))}
	b.Hash, b.Time = entity.Hash{0: byte(b.Number), 31: byte(rng.Uint32())}, 1_700_000_000+2*b.Number
	live, err := liveAt(m, b.Number)
	if err != nil {
		return b, err
	}
	for i := range rng.IntN(10) {
		op := entity.Op{
			TxIndex: uint32(i / 2), OpIndex: uint32(i % 2),
			Key:   entity.Key{0: byte(rng.IntN(entityKeys)), 31: 0xee},
			BTL:   drawLifetime(rng),
			Owner: entity.Address{byte(rng.IntN(4))},
		}
		op.Kind = drawKind(rng, live[op.Key])
		switch op.Kind {
		case entity.Create, entity.Update:
			drawContent(rng, &op)
			live[op.Key] = op.BTL > 0
		case entity.ExtendBTL:
			live[op.Key] = op.BTL > 0
		case entity.Delete, entity.Expire:
			live[op.Key] = false
		}
		b.Ops = append(b.Ops, op)
	}
	return b, nil
}

// liveAt returns the keys that are visible at a block above the head if nothing
// happens before it.
func liveAt(m *model.Model, block uint64) (map[entity.Key]bool, error) {
	s, err := m.At(store.Head)
	if err != nil {
		return nil, err
	}
	list, err := s.Query(nil, nil, 0, nil)
	live := make(map[entity.Key]bool, len(list))
	for _, e := range list {
		live[e.Key] = block < e.Expiration
	}
	return live, err
}

func drawKind(rng *rand.Rand, live bool) entity.Kind {
	if !live {
		return entity.Create
	}
	switch n := rng.IntN(100); {
	case n < 45:
		return entity.Update
	case n < 60:
		return entity.ExtendBTL
	case n < 72:
		return entity.ChangeOwner
	case n < 90:
		return entity.Delete
	}
	return entity.Expire
}

// drawLifetime draws lifetimes short enough to end while the store is tortured,
// and a few that never do.
func drawLifetime(rng *rand.Rand) uint64 {
	switch rng.IntN(8) {
	case 0:
		return math.MaxUint64
	case 1:
		return 1000
	}
	return uint64(1 + rng.IntN(40))
}

func drawContent(rng *rand.Rand, op *entity.Op) {
	size := rng.IntN(600)
	if rng.IntN(12) == 0 {
		size = rng.IntN(20_000) // several pages
	}
	op.Content = make([]byte, size)
	fill := rng.Uint64()
	for i := range op.Content {
		op.Content[i] = byte(fill >> (i % 8 * 8))
	}
	op.ContentType = [...]string{"text/plain", "application/octet-stream"}[rng.IntN(2)]
	op.StringAttributes = map[string]string{
		"group":  fmt.Sprint("g", rng.IntN(5)),
		"unique": fmt.Sprint("u", rng.Uint32()),
	}
	op.NumericAttributes = map[string]uint64{"n": uint64(rng.IntN(12))}
	if rng.IntN(3) == 0 {
		op.StringAttributes["rare"] = [...]string{"", "a", "ab", "日本"}[rng.IntN(4)]
		op.NumericAttributes["big"] = rng.Uint64()
	}
}

// questions are what is asked of a store of entities that a fault has met: all of
// them (nil), then queries of which each goes through another index, or through
// several.
var questions = func() []query.Expr {
	list := []query.Expr{nil}
	for _, text := range []string{
		`group = "g1"`, `group in ("g0", "g3") && n > 4`, `n >= 3 && n < 7`, `!(group = "g2")`, `group != "g4" || n = 2`,
		`unique ~ "u1*"`, `rare = "ab" || rare = ""`, `rare !~ "a*"`, `big > 9223372036854775807`, `n not in (1 2 3)`,
		`$owner = 0x0100000000000000000000000000000000000000`, `$creator != 0x0000000000000000000000000000000000000000`,
		`$expiration < 60`, `$lastModifiedAtBlock > 20`, `$createdAtBlock <= 30 && group = "g0"`,
		`group in ("g0", "g1", "g2") && n < 9 && !(rare = "a" || n in (0 2)) && unique ~ "u*" && $expiration > 40`,
		`(group = "g1" && n >= 2) || (rare ~ "*" && big > 5 && !(group = "g3")) || (unique !~ "u1*" && n = 7)`,
	} {
		expr, err := query.Parse(text)
		if err != nil {
			panic(err) // a constant of this file
		}
		list = append(list, expr)
	}
	return list
}()
