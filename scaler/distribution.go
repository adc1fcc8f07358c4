package scaler

import (
	"iter"

	"github.com/varvedb/varve/store/entity"
)

// Distributions is what a stream of blocks looks like. Its size is bounded,
// however long the stream: it counts, and remembers no entity. All but Blocks,
// Ops and EntitiesPerBlock is about entities as they are created.
type Distributions struct {
	Blocks   uint64                    // empty ones included
	Ops      [entity.Expire + 1]uint64 // by entity.Kind
	Entities uint64                    // created

	Kinds  Categories            // values of the attribute "type"
	Values map[string]Categories // by "type/attribute"

	Texts   Bins // string attributes of the user's, "type" included
	Numbers Bins // numeric attributes of the user's

	Payload          Bins            // bytes
	PayloadOf        map[string]Bins // bytes, by "type"
	Lifetime         Bins            // blocks to live of those that expire
	Forever          Categories      // by type, those that never expire
	EntitiesPerBlock Bins            // created, of blocks that create any
}

// Limits of what Distributions keeps.
const (
	maxCategories = 64   // values of one attribute; attributes with more are left out
	maxAttribute  = 1024 // attributes over all types
)

// Categories counts values. Many means that there were too many different ones
// to keep; what is there is then of no use.
type Categories struct {
	Counts map[string]uint64
	Many   bool
}

func (c *Categories) add(value string) {
	if c.Many {
		return
	}
	if c.Counts == nil {
		c.Counts = map[string]uint64{}
	}
	if _, known := c.Counts[value]; !known && len(c.Counts) >= maxCategories {
		c.Counts, c.Many = nil, true
		return
	}
	c.Counts[value]++
}

// Bins counts numbers in bins of equal width: bin i is of i×Width to
// (i+1)×Width−1. What lies above the last bin counts in it.
type Bins struct {
	Width  uint64
	Counts []uint64
	N      uint64 // numbers counted
}

func newBins(width uint64, n int) Bins { return Bins{Width: width, Counts: make([]uint64, n)} }

func (b *Bins) add(v uint64) {
	b.Counts[min(v/b.Width, uint64(len(b.Counts)-1))]++
	b.N++
}

// Bins of a Distributions: payloads to 128 KiB, lifetimes to 16,384 blocks (9
// hours), 4,096 entities a block.
func payloadBins() Bins { return newBins(64, 2048) }

// NewDistributions returns an empty collection.
func NewDistributions() *Distributions {
	return &Distributions{
		Values: map[string]Categories{}, PayloadOf: map[string]Bins{}, Payload: payloadBins(),
		Texts: newBins(1, 128), Numbers: newBins(1, 128),
		Lifetime: newBins(8, 2048), EntitiesPerBlock: newBins(1, 4096),
	}
}

// Collect adds up a whole stream. It returns the stream's first error, with
// what was collected before it.
func Collect(blocks iter.Seq2[entity.Block, error]) (*Distributions, error) {
	d := NewDistributions()
	for b, err := range blocks {
		if err != nil {
			return d, err
		}
		d.Add(&b)
	}
	return d, nil
}

// Add counts a block. It keeps nothing of it but short strings.
func (d *Distributions) Add(b *entity.Block) {
	d.Blocks++
	created := uint64(0)
	for i := range b.Ops {
		op := &b.Ops[i]
		d.Ops[op.Kind]++
		if op.Kind == entity.Create {
			created++
			d.create(b.Number, op)
		}
	}
	if created > 0 {
		d.EntitiesPerBlock.add(created)
	}
	d.Entities += created
}

func (d *Distributions) create(block uint64, op *entity.Op) {
	kind := op.StringAttributes["type"]
	d.Kinds.add(kind)
	d.Texts.add(uint64(len(op.StringAttributes)))
	d.Numbers.add(uint64(len(op.NumericAttributes)))
	d.Payload.add(uint64(len(op.Content)))
	if entity.AddBlocks(block, op.BTL) == entity.MaxBlock {
		d.Forever.add(kind)
	} else {
		d.Lifetime.add(op.BTL)
	}
	if sizes, ok := d.PayloadOf[kind]; ok {
		sizes.add(uint64(len(op.Content)))
		d.PayloadOf[kind] = sizes
	} else if len(d.PayloadOf) < maxCategories {
		sizes = payloadBins()
		sizes.add(uint64(len(op.Content)))
		d.PayloadOf[kind] = sizes
	}
	for name, value := range op.StringAttributes {
		d.value(kind+"/"+name, value)
	}
}

func (d *Distributions) value(name, value string) {
	c, ok := d.Values[name]
	if c.Many || !ok && len(d.Values) >= maxAttribute {
		return
	}
	c.add(value)
	d.Values[name] = c
}
