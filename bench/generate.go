package bench

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/varvedb/varve/internal/splitmix"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
)

// The ranges that generated values are drawn from.
const (
	namePool    = 500    // attribute names, as in Arkiv's Experiment 5
	valuePool   = 64     // values of a string attribute; the first has a quarter of all
	numberLimit = 10_000 // numeric values are below it
	ownerPool   = 50     // owners
)

// Endless, as GenOptions.Entities, makes the stream end only at the largest
// block number.
const Endless = math.MaxInt

// GenOptions select the entities to generate. The zero value is an empty
// stream.
type GenOptions struct {
	Entities int    `json:"entities"`  // how many
	PerBlock int    `json:"per_block"` // entities of one block; zero means 100
	Seed     uint64 `json:"seed"`      // the same seed gives the same bytes
	Start    uint64 `json:"start"`     // number of the first block; zero means 1
	Skip     int    `json:"skip"`      // number of the first entity, to continue where another stream of the same seed ended
}

func (o GenOptions) withDefaults() GenOptions {
	o.PerBlock, o.Start = cmp.Or(o.PerBlock, 100), cmp.Or(o.Start, 1)
	return o
}

// blocks returns the number of blocks of the stream.
func (o GenOptions) blocks() uint64 {
	o = o.withDefaults()
	n := o.Entities / o.PerBlock
	if o.Entities%o.PerBlock > 0 {
		n++
	}
	return uint64(n)
}

// Next returns the options of the stream that continues this one with more
// entities.
func (o GenOptions) Next(entities int) GenOptions {
	o = o.withDefaults()
	o.Start += o.blocks()
	o.Skip += o.Entities
	o.Entities = entities
	return o
}

// Blocks streams blocks that create entities. Every entity depends on profile,
// seed and its number alone. Payloads are pseudo-random bytes that do not
// compress, so that compression in an engine or file system gains nothing. The
// blocks belong to the caller. The stream ends with an error when block numbers
// run out.
func Blocks(p Profile, o GenOptions) Stream {
	return func(yield func(entity.Block, error) bool) {
		g := newGenerator(p, o)
		number := g.o.Start
		for first, left := g.o.Skip, g.o.Entities; left > 0; number++ {
			if number > entity.MaxBlockNumber {
				yield(entity.Block{}, fmt.Errorf("generate: %w: block numbers end at %d", store.ErrInvalid, uint64(entity.MaxBlockNumber)))
				return
			}
			n := min(left, g.o.PerBlock)
			b := entity.Block{Number: number, Ops: make([]entity.Op, n)}
			for i := range b.Ops {
				b.Ops[i] = g.op(entity.Create, i, uint64(first+i), 0)
			}
			if !yield(b, nil) {
				return
			}
			first, left = first+n, left-n
		}
	}
}

// Updates streams endless blocks that follow the blocks of a stream. Each one
// gives new attributes and payloads to random entities of that stream, as many
// as a block of the stream creates. An entity occurs at most once in a block
// and keeps its owner. Otherwise it behaves as Blocks.
func Updates(p Profile, of GenOptions, seed uint64) Stream {
	return func(yield func(entity.Block, error) bool) {
		if of.Entities == 0 {
			yield(entity.Block{}, fmt.Errorf("generate updates: %w: of %d entities", store.ErrInvalid, of.Entities))
			return
		}
		g := newGenerator(p, of)
		choice := newRandom(seed)
		for number := g.o.Start + g.o.blocks(); number <= entity.MaxBlockNumber; number++ {
			choice.at(updateStream, number, 0)
			b := entity.Block{Number: number}
			for i, n := range choice.distinct(min(g.o.PerBlock, g.o.Entities), g.o.Entities) {
				b.Ops = append(b.Ops, g.op(entity.Update, i, uint64(g.o.Skip+n), number)) // its revision
			}
			if !yield(b, nil) {
				return
			}
		}
	}
}

// opsPerTx is how many operations of a block come from one transaction.
const opsPerTx = 10

// generator makes entities.
type generator struct {
	p      Profile
	o      GenOptions // with all defaults filled in
	random *random
}

func newGenerator(p Profile, o GenOptions) *generator {
	return &generator{p: p, o: o.withDefaults(), random: newRandom(o.Seed)}
}

// op returns the operation at a position in a block that writes a revision of
// entity i.
func (g *generator) op(kind entity.Kind, position int, i, revision uint64) entity.Op {
	op := entity.Op{
		Kind:        kind,
		TxIndex:     uint32(position / opsPerTx),
		OpIndex:     uint32(position % opsPerTx),
		BTL:         entity.MaxBlock,
		ContentType: "application/octet-stream",
		Content:     make([]byte, g.p.Payload),
	}
	g.random.at(keyStream, i, 0)
	g.random.bytes(op.Key[:])
	g.random.at(ownerStream, i, 0)
	op.Owner = ownerAddress(g.random.IntN(ownerPool))
	g.attributes(&op, i, revision)
	g.random.at(payloadStream, i, revision)
	g.random.bytes(op.Content)
	return op
}

// ownerAddress returns an owner of the pool.
func ownerAddress(n int) (a entity.Address) {
	r := newRandom(uint64(n))
	r.at(ownerStream, 0, 1)
	r.bytes(a[:])
	return a
}

func (g *generator) attributes(op *entity.Op, i, revision uint64) {
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

// skewed maps a uniform number to the index of a value: the first value gets a quarter of all, as states such
// as "active" do, the last less than a hundredth.
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

// stream separates the random numbers of different purposes, so that keys and
// attributes do not depend on the payload size.
type stream uint64

const (
	keyStream stream = iota + 1
	ownerStream
	attributeStream
	payloadStream
	updateStream
	sampleStream
	reorgStream
)

// random is a random source that can be set to any place directly: to entity i
// in revision r of a stream.
type random struct {
	seed uint64
	pcg  *rand.PCG
	*rand.Rand
}

func newRandom(seed uint64) *random {
	pcg := rand.NewPCG(seed, 0)
	return &random{seed: seed, pcg: pcg, Rand: rand.New(pcg)}
}

// at sets the source to a place.
func (r *random) at(s stream, i, revision uint64) {
	r.pcg.Seed(splitmix.Scramble(r.seed^uint64(s)<<56), splitmix.Scramble(splitmix.Scramble(i)+revision))
}

// bytes fills p with incompressible bytes.
func (r *random) bytes(p []byte) {
	for ; len(p) >= 8; p = p[8:] {
		binary.LittleEndian.PutUint64(p, r.pcg.Uint64())
	}
	if len(p) > 0 {
		var last [8]byte
		binary.LittleEndian.PutUint64(last[:], r.pcg.Uint64())
		copy(p, last[:])
	}
}

// distinct draws k different numbers below n.
func (r *random) distinct(k, n int) []int {
	drawn, list := make(map[int]bool, k), make([]int, 0, k)
	for len(list) < k {
		if i := r.IntN(n); !drawn[i] {
			drawn[i] = true
			list = append(list, i)
		}
	}
	return list
}

// Profile is the shape of generated entities.
type Profile struct {
	Name    string `json:"name"`    // as in the names of benchmarks
	Strings int    `json:"strings"` // string attributes of an entity
	Numbers int    `json:"numbers"` // numeric attributes of an entity
	Payload int    `json:"payload"` // bytes
}

// The profiles of Arkiv's Experiment 5.
var (
	Minimal = Profile{Name: "minimal", Strings: 2, Numbers: 1, Payload: 1 << 10}
	Typical = Profile{Name: "typical", Strings: 5, Numbers: 3, Payload: 5 << 10}
	Large   = Profile{Name: "large", Strings: 10, Numbers: 5, Payload: 50 << 10}
)

// WithPayload returns the profile with payloads of n bytes, and a name that
// includes the size: Typical.WithPayload(256) is "typical-256B". Keys and
// attributes stay the same.
func (p Profile) WithPayload(n int) Profile {
	base, _, _ := strings.Cut(p.Name, "-")
	p.Name = base + "-" + strconv.Itoa(n) + "B"
	p.Payload = n
	return p
}

// The rows that one version of an entity has in addition to its attribute rows.
// Layouts with other tables use the same count, so that rows/s compares layouts
// by the requested work.
const (
	syntheticStrings = 3 // $key, $owner, $creator
	syntheticNumbers = 5 // $createdAtBlock, $expiration, $sequence, $txIndex, $opIndex
)

// Rows returns the rows of one version: its attributes, synthetic ones
// included, and its payload.
func (p Profile) Rows() int {
	return p.Strings + syntheticStrings + p.Numbers + syntheticNumbers + 1
}
