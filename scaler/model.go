package scaler

import (
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/varvedb/varve/store/entity"
)

// Options select a part of a profile. The zero value is scale 1 with seed 0.
type Options struct {
	// Scale is the size relative to the profile's, 0.0001 to 100; 0 means 1. It
	// is rounded to six decimals.
	Scale float64

	// Seed determines all random values.
	Seed uint64

	// From skips the blocks below it. What follows is the same as if they had
	// been generated. Plan ignores it.
	From uint64
}

// firstBlock is the number of the first block of every stream.
const firstBlock = 1

// The limits of Options.Scale.
const (
	MinScale = 0.0001
	MaxScale = 100
)

// model is a profile with options, prepared for generation.
type model struct {
	*Profile
	kinds    []kind
	entities uint64 // a cycle
	horizon  uint64 // blocks

	seed  uint64
	last  uint64   // block
	total uint64   // entities
	early []uint64 // entities of each kind in the first cycle
}

// kind is a Kind with precomputed tables.
type kind struct {
	*Kind
	rank  int // 0 if other kinds refer to it
	fates uint64
	zipf  []uint64 // sums of the accounts' weights
	id    *Text    // its serial attribute, or nil
	texts []text
}

// text is a Text with the kind that it refers to.
type text struct {
	*Text
	of int
}

func newModel(p *Profile, o Options) (*model, error) {
	if o.Scale == 0 {
		o.Scale = 1
	}
	if !(o.Scale >= MinScale && o.Scale <= MaxScale) {
		return nil, fmt.Errorf("scale %v: want %v to %v; beyond that, scale the result by copying", o.Scale, MinScale, MaxScale)
	}
	m := &model{Profile: p, entities: p.Entities(), seed: o.Seed}
	millionths := uint64(math.Round(o.Scale * 1e6))
	m.total = p.Cycles * m.entities * millionths / 1e6
	blocks := p.Cycles * p.CycleBlocks * millionths / 1e6
	if least := 2 * uint64(len(p.Kinds)); m.total < least {
		return nil, fmt.Errorf("scale %v of profile %q has %d entities, too few for its kinds: use a scale of %.2g or more",
			o.Scale, p.Name, m.total, float64(least)/float64(p.Cycles*m.entities))
	}
	m.last = blocks
	m.compile()
	return m, nil
}

func (m *model) compile() {
	index := func(name string) int {
		return slices.IndexFunc(m.Kinds, func(k Kind) bool { return k.Name == name })
	}
	m.kinds = make([]kind, len(m.Kinds))
	for i := range m.Kinds {
		k := &m.Kinds[i]
		m.horizon = max(m.horizon, k.horizon())
		m.kinds[i] = kind{
			Kind: k, rank: 1, fates: k.Fate.Persistent + k.Fate.Ephemeral + k.Fate.Deleted,
			zipf: zipf(k.Accounts.Count), id: k.serial(),
		}
	}
	for i := range m.kinds {
		k := &m.kinds[i]
		for j := range k.Texts {
			t := text{Text: &k.Texts[j]}
			if t.Source == ID || t.Source == Key {
				t.of = index(t.Of)
				m.kinds[t.of].rank = 0
			}
			k.texts = append(k.texts, t)
		}
	}
	m.early = m.counts(m.size(0))
}

// size returns the number of entities of a cycle. The last cycle may be
// shorter.
func (m *model) size(cycle uint64) uint64 {
	return min(m.entities, m.total-min(m.total, cycle*m.entities))
}

// span returns the number of blocks of a cycle.
func (m *model) span(cycle uint64) uint64 {
	blocks := m.last - firstBlock + 1
	return min(m.CycleBlocks, blocks-min(blocks, cycle*m.CycleBlocks))
}

// cycles returns the number of cycles, including an incomplete last one.
func (m *model) cycles() uint64 {
	return (m.last - firstBlock + m.CycleBlocks) / m.CycleBlocks
}

// zipf returns the cumulative weights 1/(n+1), in integers.
func zipf(n uint64) []uint64 {
	sums := make([]uint64, n)
	var sum uint64
	for i := range sums {
		sum += 1 << 32 / (uint64(i) + 1)
		sums[i] = sum
	}
	return sums
}

// account draws the account of a run or of a new owner.
func (m *model) account(k *kind, seed, purpose uint64) entity.Address {
	r := rng{derive(seed, purpose)}
	at := r.below(k.zipf[len(k.zipf)-1])
	n := sort.Search(len(k.zipf), func(i int) bool { return k.zipf[i] > at })
	return address(m.seed, k.Accounts.First+uint64(n))
}
