package compact

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"sort"
	"sync"

	"github.com/varvedb/varve/internal/lsm"
	"github.com/varvedb/varve/internal/packed"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
)

// change is what one block did to one key. When an entity ends and another is made under its key, the ids differ.
type change struct {
	key     entity.Key
	oldID   int64 // of the version that the block ended, or 0
	oldFrom int64 // its first block
	newID   int64 // of the version that begins, or 0
	next    version
}

// creates reports whether the version that begins is the first of its entity.
func (c *change) creates() bool { return c.newID != 0 && c.newID != c.oldID }

// node is one block of the log. Nothing changes it once it is made.
type node struct {
	block   int64
	tip     tip
	changes []change // in the order of keys
	byKey   map[entity.Key]int

	// In every lookupCost-th node: the keys of this node and of the nodes before it
	// since the last such one, by their first bytes. Nil in the others.
	recent map[uint64]struct{}

	once  sync.Once
	index map[lsm.Term][]int32 // see terms
}

// newNode makes the node that comes behind others.
func newNode(block int64, t tip, changes []change, before []*node) *node {
	n := &node{block: block, tip: t, changes: changes, byKey: make(map[entity.Key]int, len(changes))}
	for i := range changes {
		n.byKey[changes[i].key] = i
	}
	n.follow(before)
	return n
}

// follow makes the set of recent keys in every lookupCost-th node. With it look-ups
// skip as many nodes at once, because thousands of small blocks may be unmerged and
// most keys are in none of them: without it a block costs 1.5 times the CPU then.
func (n *node) follow(before []*node) {
	first := len(before) - (lookupCost - 1)
	if first < 0 || slices.ContainsFunc(before[first:], func(b *node) bool { return b.recent != nil }) {
		return
	}
	n.recent = make(map[uint64]struct{}, lookupCost*len(n.changes))
	for _, b := range append(before[first:len(before):len(before)], n) {
		for i := range b.changes {
			n.recent[firstBytes(&b.changes[i].key)] = struct{}{}
		}
	}
}

func firstBytes(key *entity.Key) uint64 { return binary.BigEndian.Uint64(key[:]) }

// terms returns where in a node's changes a value is, of all its values, and under
// an empty value where a named attribute has any. It is made when it is first asked
// for.
func (n *node) terms() map[lsm.Term][]int32 {
	n.once.Do(func() {
		n.index = make(map[lsm.Term][]int32, 12*len(n.changes))
		for i := range n.changes {
			if c := &n.changes[i]; c.newID != 0 {
				// Torn data is met again, and reported, when it is compared.
				list, _ := c.next.terms()
				for _, t := range list {
					n.index[t] = append(n.index[t], int32(i))
					if anyValue := (lsm.Term{Space: t.Space}); t.Space >= firstName && t != anyValue {
						n.index[anyValue] = append(n.index[anyValue], int32(i))
					}
				}
			}
		}
	})
	return n.index
}

// having appends to places where in a node's changes those are that have a term of
// each list. Some that have none of the last lists may be among them, because to
// compare few versions takes less time than to look many terms up. The index is
// narrowed down by all lists, because with one alone a question for three
// attributes of a data centre compared some 700 versions.
func (n *node) having(lists [][]lsm.Term, places []int32) []int32 {
	if len(lists) == 0 {
		for i := range n.changes {
			places = append(places, int32(i))
		}
		return places
	}
	index := n.terms()
	places = append(places, indexed(index, lists[0])...)
	for _, terms := range lists[1:] {
		if len(places) < len(terms) {
			break
		}
		among := indexed(index, terms)
		places = slices.DeleteFunc(places, func(i int32) bool {
			for len(among) > 0 && among[0] < i {
				among = among[1:]
			}
			return len(among) == 0 || among[0] != i
		})
	}
	return places
}

// indexed returns the places of an index that have one of the terms, in ascending order.
func indexed(index map[lsm.Term][]int32, terms []lsm.Term) (places []int32) {
	if len(terms) == 1 {
		return index[terms[0]]
	}
	for _, t := range terms {
		places = append(places, index[t]...)
	}
	slices.Sort(places)
	return places
}

// lookup returns the last change of a key at or below a block, or nil.
func lookup(nodes []*node, at int64, key entity.Key) *change {
	last := sort.Search(len(nodes), func(i int) bool { return nodes[i].block > at }) - 1
	for i := last; i >= 0; {
		n := nodes[i]
		if n.recent != nil {
			if _, ok := n.recent[firstBytes(&key)]; !ok {
				i -= lookupCost
				continue
			}
		}
		if j, ok := n.byKey[key]; ok {
			return &n.changes[j]
		}
		i--
	}
	return nil
}

// encodeChanges returns the stored form of changes: their number, and of each the key, the old id and, unless it is
// 0, its first block, the new id and, unless it is 0, expiration, payload and data.
func encodeChanges(changes []change) []byte {
	buf := make([]byte, 0, 512*len(changes)+16)
	number := func(n int64) { buf = binary.AppendUvarint(buf, uint64(n)) }
	number(int64(len(changes)))
	for i := range changes {
		c := &changes[i]
		buf = append(buf, c.key[:]...)
		if number(c.oldID); c.oldID != 0 {
			number(c.oldFrom)
		}
		if number(c.newID); c.newID != 0 {
			number(c.next.expires)
			number(c.next.content)
			buf = packed.AppendText(buf, c.next.data)
		}
	}
	return buf
}

// decodeChanges is the inverse of encodeChanges. The changes keep the bytes.
func decodeChanges(block int64, stored []byte) (changes []change, err error) {
	r := packed.Reader{Rest: stored}
	for n := r.Count(); n > 0 && !r.Torn; n-- {
		var c change
		copy(c.key[:], r.Bytes(uint64(len(c.key))))
		if c.oldID = int64(r.Uint()); c.oldID != 0 {
			c.oldFrom = int64(r.Uint())
		}
		if c.newID = int64(r.Uint()); c.newID != 0 {
			c.next = version{id: c.newID, key: c.key, from: block, expires: int64(r.Uint())}
			c.next.to, c.next.content, c.next.data = c.next.expires, int64(r.Uint()), r.Text()
		}
		changes = append(changes, c)
	}
	if r.Torn || len(r.Rest) > 0 {
		return nil, fmt.Errorf("%w: log of block %d is torn", driver.ErrCorrupt, block)
	}
	return changes, nil
}

// chain is the blocks up to a tip that were not merged at some point: those above floor.
type chain struct {
	tip   tip
	floor int64
	nodes []*node // by block

	mu   sync.Mutex
	last *overlay // the last one at the head
}

// maxChains is how many are kept: that of the head, and those of views taken a little earlier.
const maxChains = 8

// chains is a cache. One is found by the tip that a view reads, so one that was written in
// a transaction that was rolled back is never found.
type chains struct {
	mu   sync.Mutex
	list []*chain // oldest first
}

func (c *chains) keep(one *chain) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.list) >= maxChains {
		c.list = slices.Clone(c.list[1:])
	}
	c.list = append(c.list, one)
}

// find returns a chain that holds what is not merged in a view. One made in a
// transaction that merged as well and was rolled back may hold too little.
func (c *chains) find(t tip, merged int64) *chain {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, one := range slices.Backward(c.list) {
		if one.tip == t && one.floor <= merged {
			return one
		}
	}
	return nil
}

// nodes returns the blocks that are known, by their tips.
func (c *chains) nodes() map[tip]*node {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := map[tip]*node{}
	for _, one := range c.list {
		for _, n := range one.nodes {
			known[n.tip] = n
		}
	}
	return known
}

// chainAt returns the blocks that a view has in its log: from the cache, or read.
func (l *Layout) chainAt(ctx context.Context, q driver.Querier, p *progress) (*chain, error) {
	if c := l.chains.find(p.tip, p.merged); c != nil {
		return c, nil
	}
	c := &chain{tip: p.tip, floor: p.merged}
	known := l.chains.nodes()
	err := l.sql.Each(ctx, q, "log", []any{p.merged}, func(rows driver.Rows) error {
		var block int64
		var stored, bytes []byte
		if err := rows.Scan(&block, &bytes, &stored); err != nil {
			return err
		}
		t, err := tipOf(bytes)
		if err != nil {
			return err
		}
		n := known[t]
		if n == nil {
			changes, err := decodeChanges(block, stored)
			if err != nil {
				return err
			}
			n = newNode(block, t, changes, c.nodes)
		}
		c.nodes = append(c.nodes, n)
		return nil
	})
	if err == nil {
		l.chains.keep(c)
	}
	return c, err
}

// after returns the nodes above a block.
func after(nodes []*node, merged int64) []*node {
	i := slices.IndexFunc(nodes, func(n *node) bool { return n.block > merged })
	if i < 0 {
		return nil
	}
	return nodes[i:]
}
