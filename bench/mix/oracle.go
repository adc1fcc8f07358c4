package mix

import (
	"cmp"
	"fmt"
	"iter"
	"math"
	"slices"
	"sort"
	"sync"

	"github.com/varvedb/varve/store/entity"
)

// Oracle follows the blocks of a store and knows its answers to the queries of
// the mixes A, B, C and W at every block. It keeps the interval of each
// version, the parts of its content that queries use, and a hash of the rest:
// some 500 bytes an entity of the base profile.
//
// Several goroutines may read it while one advances it.
type Oracle struct {
	mu   sync.RWMutex
	head uint64

	lives    []life    // by sequence, oldest first
	versions []version // by first block
	newest   map[entity.Key]int32

	texts  [len(asked)]index
	gpus   []int32 // lives that have had attrGPU, oldest first
	sample sample  // for W

	visible int            // number of visible entities at the head
	ends    map[uint64]int // how many visible entities expire at a block
}

// life is an entity from its creation to its end. If the key is created again,
// that is another life.
type life struct {
	key      entity.Key
	creator  entity.Address
	sequence uint64
	last     int32 // its last version
	before   int32 // the previous life of the same key, or none
}

// version is one state of an entity. It is visible in [from, end).
type version struct {
	hashes
	end, expires uint64
	from         uint32
	before       int32 // the previous version of the same life, or none
	life         int32
	owner        entity.Address

	values [len(asked)]uint32 // numbers in Oracle.texts, 0 for none
	gpu    uint32             // number of GPUs plus one, 0 for none

	firstNumber, endNumber uint32 // the part of sample.numbers with the version's values
}

const none = -1

// NewOracle returns the oracle of an empty store.
func NewOracle() *Oracle {
	o := &Oracle{newest: map[entity.Key]int32{}, ends: map[uint64]int{}, sample: sample{byName: map[attributeName]*attribute{}}}
	for t := range o.texts {
		o.texts[t] = newIndex(asked[t].values)
	}
	return o
}

// Follow advances over a whole stream. It stops at the first error, of the
// stream or of Advance.
func (o *Oracle) Follow(blocks iter.Seq2[entity.Block, error]) error {
	for b, err := range blocks {
		if err == nil {
			err = o.Advance(&b)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Head returns the last block that was followed.
func (o *Oracle) Head() uint64 {
	o.mu.RLock()
	defer o.mu.RUnlock()
	return o.head
}

// Advance follows a block, before a store applies it. It retains nothing of the
// block but short strings. It fails, and changes nothing, when the block is not
// above the head or does not fit the state before it.
func (o *Oracle) Advance(b *entity.Block) error {
	if len(o.versions) > 0 && b.Number <= o.head {
		return fmt.Errorf("oracle: block %d is not above the last, %d", b.Number, o.head)
	}
	set, err := entity.Fold(b, o.prior(b), entity.Rules{})
	if err != nil {
		return fmt.Errorf("oracle: %w", err)
	}
	// Lives are numbered in the order of their sequences.
	slices.SortFunc(set.Changes, func(a, b entity.Change) int { return cmp.Compare(sequence(a.New), sequence(b.New)) })
	hashed := make([]hashes, len(set.Changes))
	for i, c := range set.Changes { // readers need not wait for this
		if c.New != nil && !c.ContentKept {
			hashed[i] = newHashes(c.New)
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.expire(b.Number)
	for i := range set.Changes {
		o.apply(b.Number, &set.Changes[i], hashed[i])
	}
	o.head = b.Number
	return nil
}

// Visible returns how many entities are visible at the head.
func (o *Oracle) Visible() int {
	o.mu.RLock()
	defer o.mu.RUnlock()
	return o.visible
}

// expire no longer counts the entities as visible that expire after the head, up
// to a block. It visits either the block numbers or the recorded ends, whichever
// are fewer.
func (o *Oracle) expire(block uint64) {
	if block-o.head < uint64(len(o.ends)) {
		for n := o.head + 1; n <= block; n++ {
			o.hide(n, o.ends[n])
		}
		return
	}
	for n := range o.ends {
		if n <= block {
			o.hide(n, o.ends[n])
		}
	}
}

// show counts an entity as visible until a block.
func (o *Oracle) show(until uint64) {
	o.visible++
	o.ends[until]++
}

// hide no longer counts n entities that were visible until a block.
func (o *Oracle) hide(until uint64, n int) {
	o.visible -= n
	if o.ends[until] -= n; o.ends[until] == 0 {
		delete(o.ends, until)
	}
}

func sequence(e *entity.Entity) uint64 {
	if e == nil {
		return 0
	}
	return e.Sequence
}

// prior returns the earlier versions that Fold needs, without attributes and
// content; where these are kept, apply adds them.
func (o *Oracle) prior(b *entity.Block) map[entity.Key]entity.Prior {
	prior := make(map[entity.Key]entity.Prior, len(b.Ops))
	for i := range b.Ops {
		l, known := o.newest[b.Ops[i].Key]
		if !known {
			continue
		}
		switch v := &o.versions[o.lives[l].last]; {
		case v.visible(b.Number):
			prior[b.Ops[i].Key] = entity.Prior{Live: o.metadata(l, v)}
		case v.end == v.expires: // nothing ended it before its time
			prior[b.Ops[i].Key] = entity.Prior{Expired: true}
		}
	}
	return prior
}

// metadata returns a version of a life as an entity that has only metadata,
// because the other parts are not kept.
func (o *Oracle) metadata(l int32, v *version) *entity.Entity {
	at := &o.lives[l]
	return &entity.Entity{
		Key: at.key, Sequence: at.sequence, Creator: at.creator, Owner: v.owner,
		LastModifiedAtBlock: uint64(v.from), Expiration: v.expires,
	}
}

// apply ends the old version of a changed entity and adds the new one.
func (o *Oracle) apply(block uint64, c *entity.Change, h hashes) {
	// End the old version, whose content the new one may keep.
	v := version{hashes: h, before: none}
	if c.Old != nil {
		old := &o.versions[o.lives[o.newest[c.Key]].last]
		o.hide(old.end, 1)
		old.end = min(old.end, block)
		if c.ContentKept {
			v = *old
		}
	}
	if c.New == nil {
		return
	}

	// Add the new version to its life, or to a new life.
	v.from, v.owner, v.end, v.expires = uint32(block), c.New.Owner, c.New.Expiration, c.New.Expiration
	l := o.newest[c.Key]
	if c.Old == nil || c.Old.Sequence != c.New.Sequence {
		l = o.begin(c.New)
	} else {
		v.before = o.lives[l].last
	}
	if v.life = l; !c.ContentKept {
		o.number(&v, c.New)
		o.sample.add(&v, c.New, l)
	}
	o.lives[l].last = int32(len(o.versions))
	o.versions = append(o.versions, v)
	if v.visible(block) {
		o.show(v.end)
	}

	// Add the life to the indexes of its values.
	for t := range o.texts {
		o.texts[t].post(v.values[t], l)
	}
	if v.gpu > 0 {
		o.gpus = insert(o.gpus, l)
	}
}

// number fills in the parts of a version that queries use.
func (o *Oracle) number(v *version, e *entity.Entity) {
	v.values[byCreator] = o.texts[byCreator].number(e.Creator.String())
	for t, a := range asked {
		if value := e.StringAttributes[a.name]; value != "" { // no question asks for an empty one
			v.values[t] = o.texts[t].number(value)
		}
	}
	if n, ok := e.NumericAttributes[attrGPU]; ok {
		v.gpu = uint32(min(n, math.MaxUint32-1)) + 1
	}
}

// begin adds a life without versions.
func (o *Oracle) begin(e *entity.Entity) int32 {
	l := int32(len(o.lives))
	before, again := o.newest[e.Key]
	if !again {
		before = none
	}
	o.newest[e.Key] = l
	o.lives = append(o.lives, life{key: e.Key, creator: e.Creator, sequence: e.Sequence, before: before})
	return l
}

func (v *version) visible(block uint64) bool { return uint64(v.from) <= block && block < v.end }

// at returns the version of a life that is visible at a block, or nil.
func (o *Oracle) at(l int32, block uint64) *version {
	for n := o.lives[l].last; n != none; n = o.versions[n].before {
		if v := &o.versions[n]; v.visible(block) {
			return v
		}
	}
	return nil
}

// lookup returns the life and the version of a key that are visible at a block; nil when none are.
func (o *Oracle) lookup(key entity.Key, block uint64) (l int32, v *version) {
	l, known := o.newest[key]
	for known && l != none {
		if v = o.at(l, block); v != nil {
			return l, v
		}
		l = o.lives[l].before
	}
	return none, nil
}

// first returns the block of the first creation, 0 when there is none.
func (o *Oracle) first() uint64 {
	if len(o.lives) == 0 {
		return 0
	}
	return o.lives[0].sequence >> 32
}

// changed returns the lives that changed in blocks from up to, but not
// including, to, oldest first. It returns false if they are too many to list; a
// search through all lives then finds matches soon.
func (o *Oracle) changed(from, to uint64) (list []int32, all bool) {
	at := func(block uint64) int {
		return sort.Search(len(o.versions), func(i int) bool { return uint64(o.versions[i].from) >= block })
	}
	first, end := at(from), at(to)
	if end-first > maxChanges {
		return nil, false
	}
	for i := first; i < end; i++ {
		list = append(list, o.versions[i].life)
	}
	slices.Sort(list)
	return slices.Compact(list), true
}

const maxChanges = 4_096

// born returns how many lives began at or before a block.
func (o *Oracle) born(block uint64) int {
	return sort.Search(len(o.lives), func(i int) bool { return o.lives[i].sequence>>32 > block })
}
