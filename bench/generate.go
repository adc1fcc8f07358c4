package bench

import (
	"fmt"
	"iter"
	"math"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
)

// What generated entities are drawn from.
const (
	namePool    = 500    // attribute names, as in the seed's Experiment 5
	valuePool   = 64     // values of a string attribute; the first has a quarter of all
	numberLimit = 10_000 // numeric values are below it
	ownerPool   = 50     // owners
)

// Endless, as GenOptions.Entities, is a stream that ends only with the range of
// block numbers.
const Endless = math.MaxInt

// GenOptions say which entities to generate. The zero value is an empty stream.
type GenOptions struct {
	Entities int    `json:"entities"`  // how many
	PerBlock int    `json:"per_block"` // entities of one block; zero means 100
	Seed     uint64 `json:"seed"`      // the same seed gives the same bytes
	Start    uint64 `json:"start"`     // number of the first block; zero means 1
	Skip     int    `json:"skip"`      // number of the first entity: a stream goes on where another of the same seed ended
	BTL      uint64 `json:"btl"`       // blocks to live; zero means for ever
}

func (o GenOptions) withDefaults() GenOptions {
	if o.PerBlock == 0 {
		o.PerBlock = 100
	}
	if o.Start == 0 {
		o.Start = 1
	}
	if o.BTL == 0 {
		o.BTL = entity.MaxBlock
	}
	return o
}

func (o GenOptions) check() error {
	if o.Entities < 0 || o.PerBlock < 0 || o.Skip < 0 {
		return fmt.Errorf("generate: %w: a negative number of entities", store.ErrInvalid)
	}
	return nil
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

// Next returns the options of the stream that goes on after this one, with
// Entities entities.
func (o GenOptions) Next(entities int) GenOptions {
	o = o.withDefaults()
	o.Start += o.blocks()
	o.Skip += o.Entities
	o.Entities = entities
	return o
}

// Blocks streams blocks that create entities. Every entity is a function of
// profile, seed and its number alone. Payloads are pseudo-random bytes, which
// do not compress: an engine or file system that compresses gains nothing. The
// blocks belong to the caller. The stream ends with an error when the options
// are wrong or block numbers run out.
func Blocks(p Profile, o GenOptions) iter.Seq2[store.Block, error] {
	return func(yield func(store.Block, error) bool) {
		if err := o.check(); err != nil {
			yield(store.Block{}, err)
			return
		}
		g := newGenerator(p, o)
		number := g.o.Start
		for first, left := g.o.Skip, g.o.Entities; left > 0; number++ {
			if number > entity.MaxBlockNumber {
				yield(store.Block{}, fmt.Errorf("generate: %w: block numbers end at %d", store.ErrInvalid, uint64(entity.MaxBlockNumber)))
				return
			}
			n := min(left, g.o.PerBlock)
			if !yield(g.creations(number, first, n), nil) {
				return
			}
			first, left = first+n, left-n
		}
	}
}

// Updates streams blocks without end that follow those of a stream and give random
// entities of it new attributes and payloads, in each block as many as are created in
// one; within a block each entity comes once. Owners stay. Otherwise it is as Blocks.
func Updates(p Profile, of GenOptions, seed uint64) iter.Seq2[store.Block, error] {
	return func(yield func(store.Block, error) bool) {
		if err := of.check(); err != nil || of.Entities == 0 {
			yield(store.Block{}, fmt.Errorf("generate updates: %w: of %d entities", store.ErrInvalid, of.Entities))
			return
		}
		g := newGenerator(p, of)
		choice := newRandom(seed)
		for number := g.o.Start + g.o.blocks(); number <= entity.MaxBlockNumber; number++ {
			choice.at(updateStream, number, 0)
			if !yield(g.updates(number, choice.distinct(min(g.o.PerBlock, g.o.Entities), g.o.Entities)), nil) {
				return
			}
		}
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
