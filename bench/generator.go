package bench

import (
	"fmt"

	"github.com/varvedb/varve/internal/splitmix"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
)

// opsPerTx is how many operations of a block come from one transaction.
const opsPerTx = 10

// generator makes entities.
type generator struct {
	p      Profile
	o      GenOptions // complete
	random *random
}

func newGenerator(p Profile, o GenOptions) *generator {
	o = o.withDefaults()
	return &generator{p: p, o: o, random: newRandom(o.Seed)}
}

func (g *generator) creations(number uint64, first, n int) store.Block {
	b := store.Block{Number: number, Ops: make([]store.Op, n)}
	for i := range b.Ops {
		b.Ops[i] = g.op(store.Create, i, uint64(first+i), 0)
	}
	return b
}

// updates makes a block of updates of the entities with these numbers, counted
// from the first of the stream. The block's number is their revision.
func (g *generator) updates(number uint64, of []int) store.Block {
	b := store.Block{Number: number, Ops: make([]store.Op, len(of))}
	for i, n := range of {
		b.Ops[i] = g.op(store.Update, i, uint64(g.o.Skip+n), number)
	}
	return b
}

// op makes the operation at a position in a block that gives entity i its
// revision.
func (g *generator) op(kind entity.Kind, position int, i, revision uint64) store.Op {
	op := store.Op{
		Kind:        kind,
		TxIndex:     uint32(position / opsPerTx),
		OpIndex:     uint32(position % opsPerTx),
		Key:         g.key(i),
		BTL:         g.o.BTL,
		Owner:       g.owner(i),
		ContentType: "application/octet-stream",
		Content:     make([]byte, g.p.Payload),
	}
	g.attributes(&op, i, revision)
	g.random.at(payloadStream, i, revision)
	g.random.bytes(op.Content)
	return op
}

func (g *generator) key(i uint64) (key store.Key) {
	g.random.at(keyStream, i, 0)
	g.random.bytes(key[:])
	return key
}

func (g *generator) owner(i uint64) store.Address {
	g.random.at(ownerStream, i, 0)
	return ownerAddress(g.random.IntN(ownerPool))
}

// ownerAddress returns an owner of the pool.
func ownerAddress(n int) (a store.Address) {
	r := newRandom(uint64(n))
	r.at(ownerStream, 0, 1)
	r.bytes(a[:])
	return a
}

func (g *generator) attributes(op *store.Op, i, revision uint64) {
	r := g.random
	r.at(attributeStream, i, revision)
	op.StringAttributes = make(map[string]string, g.p.Strings)
	for len(op.StringAttributes) < g.p.Strings {
		op.StringAttributes[names[r.IntN(namePool)]] = values[skewed(r.Float64())]
	}
	op.NumericAttributes = make(map[string]uint64, g.p.Numbers)
	for len(op.NumericAttributes) < g.p.Numbers {
		op.NumericAttributes[names[r.IntN(namePool)]] = number(r)
	}
}

// skewed maps a uniform number to the index of a value: the first value gets
// a quarter of all, as states such as "active" do, the last less than a
// hundredth.
func skewed(u float64) int { return int(u * u * u * valuePool) }

// number draws a numeric value: half are sizes, powers of two up to 128, and
// half are measurements, uniform below numberLimit.
func number(r *random) uint64 {
	if n := r.Uint64N(2 * numberLimit); n >= numberLimit {
		return n - numberLimit
	}
	return 1 << r.IntN(8)
}

// names and values are the pools that attributes are drawn from.
var (
	names  = pool(namePool, func(i int) string { return fmt.Sprintf("attr_%03d", i) })
	values = pool(valuePool, func(i int) string { return fmt.Sprintf("v%02d-%012x", i, splitmix.Scramble(uint64(i))>>16) })
)

func pool(n int, f func(i int) string) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = f(i)
	}
	return list
}
