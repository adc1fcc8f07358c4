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

// Oracle follows the blocks of a store and knows what it must answer to the
// questions of the mixes A, B and C at every block: it keeps the interval of
// each version, and of its content what the questions ask for and a hash of the
// rest. That takes some 240 bytes an entity of the base profile.
//
// It may be read by several goroutines while one advances it.
type Oracle struct {
	mu   sync.RWMutex
	head uint64

	lives    []life           // by sequence, oldest first
	versions []version        // by first block
	known    map[uint64]int32 // the newest life of a hash of keys

	texts    [len(asked)]index[string]
	creators index[entity.Address]
	owners   index[entity.Address]
	gpus     []int32 // lives that have had allocatable_gpu, oldest first
	chained  []int32 // lives that have had a successor, oldest first

	writer sync.Mutex // held by the one goroutine that advances
}

// life is an entity from one creation to its end. One that is made again under
// the same key has another.
type life struct {
	key         entity.Key
	sequence    uint64
	creator     uint32
	first, last int32 // versions
	before      int32 // the life with the same hash of its key before this one, or none
}

// version is one state of an entity. It is visible in [from, end).
type version struct {
	rest         uint64 // hash of attributes and content type
	content      uint64 // hash
	end, expires uint64
	from         uint32
	size         uint32 // of the content
	life         int32
	next         int32 // version of the same life, or none
	owner        uint32

	values [len(asked)]uint32 // numbers in Oracle.texts, 0 for none
	gpu    uint32             // one more than their number, 0 for none
}

const none = -1

// NewOracle returns the oracle of an empty store.
func NewOracle() *Oracle {
	o := &Oracle{known: map[uint64]int32{}, creators: newIndex(nobody), owners: newIndex(nobody)}
	// What questions name they may ask for before anybody has it.
	named := [len(asked)][]string{byStatus: {statusPending, statusActive}, byType: {typeVote, typeProposal}}
	for t := range o.texts {
		o.texts[t] = newIndex(absent, named[t]...)
	}
	return o
}

// Follow advances over a stream to its end. It stops at the first error, of the
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

// Advance follows a block, before a store applies it. It keeps nothing of the
// block but short strings. It fails, and changes nothing, when the block is not
// above the head or does not fit the state before it.
func (o *Oracle) Advance(b *entity.Block) error {
	o.writer.Lock()
	defer o.writer.Unlock()
	if len(o.versions) > 0 && b.Number <= o.head {
		return fmt.Errorf("oracle: block %d is not above the last, %d", b.Number, o.head)
	}
	set, err := entity.Fold(b, o.prior(b), entity.Rules{})
	if err != nil {
		return fmt.Errorf("oracle: %w", err)
	}
	changes := make([]change, len(set.Changes))
	for i := range set.Changes {
		changes[i] = newChange(&set.Changes[i])
	}
	// Lives are numbered in the order of their sequences.
	slices.SortFunc(changes, func(a, b change) int { return cmp.Compare(a.order(), b.order()) })
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range changes {
		o.apply(b.Number, &changes[i])
	}
	o.head = b.Number
	return nil
}

// prior tells Fold what was there before, without attributes and content: where
// it keeps them, apply does.
func (o *Oracle) prior(b *entity.Block) map[entity.Key]entity.Prior {
	prior := make(map[entity.Key]entity.Prior, len(b.Ops))
	for i := range b.Ops {
		key := b.Ops[i].Key
		l := o.find(key)
		if _, done := prior[key]; done || l == none {
			continue
		}
		v := &o.versions[o.lives[l].last]
		switch {
		case v.visible(b.Number):
			prior[key] = entity.Prior{Live: o.stub(l)}
		case v.end == v.expires: // nothing ended it before its time
			prior[key] = entity.Prior{Expired: true}
		}
	}
	return prior
}

// stub returns the last version of a life without what is not kept.
func (o *Oracle) stub(l int32) *entity.Entity {
	at := &o.lives[l]
	v := &o.versions[at.last]
	return &entity.Entity{
		Key: at.key, Sequence: at.sequence, Creator: o.creators.values[at.creator], Owner: o.owners.values[v.owner],
		LastModifiedAtBlock: uint64(v.from), Expiration: v.expires,
	}
}

// change is an entity.Change with what takes time to compute.
type change struct {
	*entity.Change
	born bool // New begins a life
	version
}

func newChange(c *entity.Change) change {
	n := change{Change: c}
	if c.New == nil {
		return n
	}
	n.born = c.Old == nil || c.Old.Sequence != c.New.Sequence
	if !c.ContentKept {
		n.rest, n.content, n.size = hashRest(c.New), hashContent(c.New.Content), uint32(len(c.New.Content))
	}
	return n
}

func (c *change) order() uint64 {
	if c.New == nil {
		return 0
	}
	return c.New.Sequence
}

func (o *Oracle) apply(block uint64, c *change) {
	l := int32(none)
	if c.Old != nil {
		l = o.find(c.Key)
		old := &o.versions[o.lives[l].last]
		old.end = min(old.end, block)
	}
	if c.New == nil {
		return
	}
	v := c.version
	v.from, v.next, v.owner = uint32(block), none, o.owners.number(c.New.Owner)
	v.end, v.expires = c.New.Expiration, c.New.Expiration
	if c.ContentKept {
		old := &o.versions[o.lives[l].last]
		v.rest, v.content, v.size = old.rest, old.content, old.size
		v.values, v.gpu = old.values, old.gpu
	} else {
		o.number(&v, c.New)
	}
	if c.born {
		l = o.begin(c.New)
	} else {
		o.versions[o.lives[l].last].next = int32(len(o.versions))
	}
	v.life = l
	o.lives[l].last = int32(len(o.versions))
	o.versions = append(o.versions, v)
	o.post(l, &v)
}

// number fills in the values that are asked for.
func (o *Oracle) number(v *version, e *entity.Entity) {
	for t, name := range asked {
		if value, ok := e.StringAttributes[name]; ok {
			v.values[t] = o.texts[t].number(value)
		}
	}
	if n, ok := e.NumericAttributes[attrGPU]; ok {
		v.gpu = uint32(min(n, math.MaxUint32-1)) + 1
	}
}

// begin makes a life whose first version is the next.
func (o *Oracle) begin(e *entity.Entity) int32 {
	l := int32(len(o.lives))
	next, h := int32(len(o.versions)), hashKey(e.Key)
	before, ok := o.known[h]
	if !ok {
		before = none
	}
	o.known[h] = l
	creator := o.creators.number(e.Creator)
	o.lives = append(o.lives, life{key: e.Key, sequence: e.Sequence, creator: creator, first: next, last: next, before: before})
	o.creators.post(creator, l)
	return l
}

// post enters a life into the lists of a new version's values.
func (o *Oracle) post(l int32, v *version) {
	for t := range o.texts {
		o.texts[t].post(v.values[t], l)
	}
	if v.gpu > 0 {
		o.gpus = insert(o.gpus, l)
	}
	if n := v.values[byChunk]; n > 0 && o.texts[byChunk].values[n] != "" {
		o.chained = insert(o.chained, l)
	}
}

// find returns the newest life of a key, or none.
func (o *Oracle) find(key entity.Key) int32 {
	l, ok := o.known[hashKey(key)]
	if !ok {
		return none
	}
	for l != none && o.lives[l].key != key {
		l = o.lives[l].before
	}
	return l
}

func (v *version) visible(block uint64) bool { return uint64(v.from) <= block && block < v.end }

// at returns the version of a life that is visible at a block, or none.
func (o *Oracle) at(l int32, block uint64) int32 {
	at := &o.lives[l]
	n := at.last
	if v := &o.versions[n]; uint64(v.from) <= block {
		if v.visible(block) {
			return n
		}
		return none
	}
	for n = at.first; n != none; n = o.versions[n].next {
		if o.versions[n].visible(block) {
			return n
		}
	}
	return none
}

// lookup returns the life and the version of a key that are visible at a block,
// or none.
func (o *Oracle) lookup(key entity.Key, block uint64) (l, v int32) {
	for l = o.find(key); l != none; l = o.lives[l].before {
		if o.lives[l].key != key {
			continue
		}
		if v = o.at(l, block); v != none {
			return l, v
		}
	}
	return none, none
}

// born returns how many lives began at or before a block.
func (o *Oracle) born(block uint64) int {
	return sort.Search(len(o.lives), func(i int) bool { return o.lives[i].sequence>>32 > block })
}
