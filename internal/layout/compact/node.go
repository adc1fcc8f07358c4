package compact

import (
	"context"
	"encoding/binary"
	"fmt"
	"sort"
	"sync"

	"github.com/varvedb/varve/internal/packed"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
)

// change is what one block did to one key. When an entity ends and another is
// made under its key, the ids differ.
type change struct {
	key         entity.Key
	oldID       int64 // of the version that the block ended, or 0
	oldFrom     int64 // its first block
	newID       int64 // of the version that begins, or 0
	next        version
	nextUpdates bool // next is a version of the entity oldID
}

// node is one block of the log. Nothing changes it once it is made.
type node struct {
	block   int64
	tip     tip
	changes []change // in the order of keys
	byKey   map[entity.Key]int

	// Every few nodes: the keys of this one and the recentNodes-1 before it, by
	// their first bytes. Nil in the others.
	recent map[uint64]struct{}

	once  sync.Once
	index map[term][]int32 // see terms
}

func newNode(block int64, t tip, changes []change) *node {
	n := &node{block: block, tip: t, changes: changes, byKey: make(map[entity.Key]int, len(changes))}
	for i := range changes {
		c := &changes[i]
		c.nextUpdates = c.newID != 0 && c.oldID == c.newID
		n.byKey[c.key] = i
	}
	return n
}

// recentNodes is how many nodes a look-up passes at once. Hundreds are not merged
// when blocks come fast, and most keys are in none.
const recentNodes = 32

// follow makes what look-ups pass nodes by, if it is a node's turn. Before are the
// nodes before it.
func (n *node) follow(before []*node) {
	first := len(before) - (recentNodes - 1)
	if first < 0 {
		return
	}
	for _, b := range before[first:] {
		if b.recent != nil {
			return
		}
	}
	n.recent = make(map[uint64]struct{}, recentNodes*len(n.changes))
	for _, b := range append(before[first:len(before):len(before)], n) {
		for i := range b.changes {
			n.recent[firstBytes(&b.changes[i].key)] = struct{}{}
		}
	}
}

func firstBytes(key *entity.Key) uint64 { return binary.BigEndian.Uint64(key[:]) }

// encode returns the stored form of changes: their number, and of each the key,
// the old id and, unless it is 0, its first block, the new id and, unless it is
// 0, expiration, payload and data.
func encodeChanges(changes []change) []byte {
	buf := make([]byte, 0, 512*len(changes)+16)
	buf = binary.AppendUvarint(buf, uint64(len(changes)))
	for i := range changes {
		c := &changes[i]
		buf = append(buf, c.key[:]...)
		buf = binary.AppendUvarint(buf, uint64(c.oldID))
		if c.oldID != 0 {
			buf = binary.AppendUvarint(buf, uint64(c.oldFrom))
		}
		buf = binary.AppendUvarint(buf, uint64(c.newID))
		if c.newID != 0 {
			buf = binary.AppendUvarint(buf, uint64(c.next.expires))
			buf = binary.AppendUvarint(buf, uint64(c.next.content))
			buf = binary.AppendUvarint(buf, uint64(len(c.next.data)))
			buf = append(buf, c.next.data...)
		}
	}
	return buf
}

// decodeNode is the inverse of encodeChanges. The node keeps the bytes.
func decodeNode(block int64, t tip, stored []byte) (*node, error) {
	c := packed.Reader{Rest: stored}
	n := c.Count()
	var changes []change
	for ; n > 0 && !c.Torn; n-- {
		var ch change
		copy(ch.key[:], c.Bytes(uint64(len(ch.key))))
		if ch.oldID = int64(c.Uint()); ch.oldID != 0 {
			ch.oldFrom = int64(c.Uint())
		}
		if ch.newID = int64(c.Uint()); ch.newID != 0 {
			ch.next = version{id: ch.newID, key: ch.key, from: block}
			ch.next.expires, ch.next.content = int64(c.Uint()), int64(c.Uint())
			ch.next.data = c.Text()
		}
		changes = append(changes, ch)
	}
	if c.Torn || len(c.Rest) > 0 {
		return nil, fmt.Errorf("%w: log of block %d is torn", driver.ErrCorrupt, block)
	}
	return newNode(block, t, changes), nil
}

// chain is the blocks up to a tip that were not merged at some point: those
// above floor.
type chain struct {
	tip   tip
	floor int64
	nodes []*node // by block

	overlays overlayCache
}

// maxChains is how many are kept: that of the head, and those of views taken a
// little earlier.
const maxChains = 8

// chainAt returns the blocks that a view has in its log: from the cache, or read.
func (l *Layout) chainAt(ctx context.Context, q driver.Querier, p *progress) (*chain, error) {
	if c := l.cached(p.tip, p.merged); c != nil {
		return c, nil
	}
	c := &chain{tip: p.tip, floor: p.merged}
	known := l.knownNodes()
	err := eachRow(ctx, q, l.sql["log"], []any{p.merged}, func(rows driver.Rows) error {
		var block int64
		var t, stored []byte
		if err := rows.Scan(&block, &t, &stored); err != nil {
			return err
		}
		if len(t) != len(tip{}) {
			return fmt.Errorf("%w: tip of %d bytes", driver.ErrCorrupt, len(t))
		}
		n := known[tip(t)]
		if n == nil {
			var err error
			if n, err = decodeNode(block, tip(t), stored); err != nil {
				return err
			}
			n.follow(c.nodes)
		}
		c.nodes = append(c.nodes, n)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the log: %w", err)
	}
	l.keep(c)
	return c, nil
}

// cached returns a chain that holds what is not merged in a view. One made in a
// transaction that merged as well and was rolled back may hold too little.
func (l *Layout) cached(t tip, merged int64) *chain {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := len(l.chains) - 1; i >= 0; i-- {
		if l.chains[i].tip == t && l.chains[i].floor <= merged {
			return l.chains[i]
		}
	}
	return nil
}

func (l *Layout) keep(c *chain) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.chains) >= maxChains {
		l.chains = append(l.chains[:0:0], l.chains[1:]...)
	}
	l.chains = append(l.chains, c)
}

func (l *Layout) knownNodes() map[tip]*node {
	l.mu.Lock()
	defer l.mu.Unlock()
	known := map[tip]*node{}
	for _, c := range l.chains {
		for _, n := range c.nodes {
			known[n.tip] = n
		}
	}
	return known
}

// after returns the nodes above a block.
func after(nodes []*node, merged int64) []*node {
	for i, n := range nodes {
		if n.block > merged {
			return nodes[i:]
		}
	}
	return nil
}

// lookup returns the last change of a key at or below a block, or nil.
func lookup(nodes []*node, at int64, key entity.Key) *change {
	last := sort.Search(len(nodes), func(i int) bool { return nodes[i].block > at }) - 1
	for i := last; i >= 0; {
		n := nodes[i]
		if n.recent != nil {
			if _, ok := n.recent[firstBytes(&key)]; !ok {
				i -= recentNodes
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
