package compact

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"github.com/varvedb/varve/internal/layout"
	"github.com/varvedb/varve/internal/packed"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
)

// writer is a write transaction. It shares nothing that it wrote, because the
// transaction may be rolled back.
type writer struct {
	*view // as the transaction has left the store so far
	tx    driver.Tx
	found map[entity.Key]*version // live versions as Prior gave them
}

// Writer implements layout.Layout.
func (l *Layout) Writer(ctx context.Context, tx driver.Tx) (layout.Writer, error) {
	v, err := l.newView(ctx, tx, 0)
	if err != nil {
		return nil, err
	}
	// Nothing is written in the transaction yet: what it reads is committed.
	if err := l.loadNames(ctx, tx, v.names, v.p.names); err != nil {
		return nil, err
	}
	v.names = v.names.fork()
	return &writer{view: v, tx: tx, found: map[entity.Key]*version{}}, nil
}

// Prior implements layout.Writer.
func (w *writer) Prior(ctx context.Context, block uint64, needs map[entity.Key]entity.Need) (map[entity.Key]entity.Prior, error) {
	w.move(block)
	keys := sortedKeys(needs)
	live, ended, err := w.live(ctx, keys)
	if err != nil {
		return nil, fmt.Errorf("read live versions: %w", err)
	}
	prior := make(map[entity.Key]entity.Prior, len(needs))
	dictionary := w.names.list()
	var list []*version   // whose payloads are needed
	var ends []entity.Key // of which it is needed how they ended
	for _, key := range keys {
		need, found := needs[key], live[key]
		switch {
		case found != nil:
			w.found[key] = found
			e, err := found.entity(dictionary, true)
			if err != nil {
				return nil, err
			}
			prior[key] = entity.Prior{Live: e}
			if need&entity.NeedContent != 0 {
				list = append(list, found)
			}
		case need&entity.NeedEnd != 0:
			ends = append(ends, key)
		}
	}
	if err := w.ranOut(ctx, ends, ended, prior); err != nil {
		return nil, fmt.Errorf("read ended versions: %w", err)
	}
	contents, err := w.contents(ctx, list)
	if err != nil {
		return nil, fmt.Errorf("read payloads: %w", err)
	}
	for _, found := range list {
		prior[found.key].Live.Content = contents[found.content]
	}
	return prior, nil
}

// live returns the versions of keys that are visible in a view above the last block, by key, and of the other keys
// what it has met of them: the last change in the log, or versions that ran out and were not moved yet.
func (v *view) live(ctx context.Context, keys []entity.Key) (found, ended map[entity.Key]*version, err error) {
	found, ended = make(map[entity.Key]*version, len(keys)), map[entity.Key]*version{}
	wanted := make(map[entity.Key]bool, len(keys))
	var hashes []any
	for _, key := range keys {
		switch c := lookup(v.nodes, v.at, key); {
		case c == nil:
			wanted[key] = true
			hashes = append(hashes, hashKey(key))
		case c.newID == 0:
			ended[key] = nil
		case c.next.visible(v.at):
			found[key] = &c.next
		default:
			ended[key] = &c.next
		}
	}
	err = v.versionsOfKeys(ctx, true, hashes, func(r *version) error {
		switch {
		case !wanted[r.key]:
		case r.visible(v.at):
			found[r.key] = r
		default:
			keepLast(ended, r)
		}
		return nil
	})
	return found, ended, err
}

func keepLast(last map[entity.Key]*version, r *version) {
	if was := last[r.key]; was == nil || r.from > was.from {
		last[r.key] = r
	}
}

// ranOut adds to prior, for keys that are not live, whether the last version
// expired by itself. Ended is as live returns it.
func (v *view) ranOut(ctx context.Context, keys []entity.Key, ended map[entity.Key]*version, prior map[entity.Key]entity.Prior) error {
	wanted := make(map[entity.Key]bool, len(keys))
	var hashes []any
	for _, key := range keys {
		if lookup(v.nodes, v.at, key) == nil { // else the log has the last
			wanted[key] = true
			hashes = append(hashes, hashKey(key))
		}
	}
	err := v.versionsOfKeys(ctx, false, hashes, func(r *version) error {
		if wanted[r.key] {
			keepLast(ended, r)
		}
		return nil
	})
	for _, key := range keys {
		last := ended[key]
		if err != nil || last == nil || last.to != last.expires {
			continue
		}
		var e *entity.Entity
		if e, err = last.entity(v.names.list(), true); err == nil {
			prior[key] = entity.Prior{Expired: !e.Trace()}
		}
	}
	return err
}

// Write implements layout.Writer: payloads and one row of the log.
func (w *writer) Write(ctx context.Context, set entity.Changeset) error {
	if len(set.Changes) == 0 {
		return nil
	}
	w.move(set.Block)
	b := &block{writer: w, set: set}
	if err := b.changes(ctx); err != nil {
		return err
	}
	if err := b.write(ctx); err != nil {
		return err
	}
	w.found = map[entity.Key]*version{}
	if share, ok := w.l.opts.shareBudget(int(w.p.backlog), len(set.Changes), w.l.prepared.unfinished()); ok {
		if err := w.l.maintain(ctx, w.tx, w.view, share); err != nil {
			return err
		}
	}
	w.l.lastSeen.set(w.nodes)
	return w.l.writeProgress(ctx, w.tx, &w.p)
}

// block turns a changeset into a row of the log.
type block struct {
	*writer
	set      entity.Changeset
	list     []change
	rows     []any // of payloads
	newNames []any // rows
}

// changes gives numbers to entities, payloads and names.
func (b *block) changes(ctx context.Context) error {
	if err := b.findOld(ctx); err != nil {
		return err
	}
	b.list = make([]change, len(b.set.Changes))
	var created []int
	for i := range b.set.Changes {
		c, ch := &b.set.Changes[i], &b.list[i]
		ch.key = c.Key
		var was *version
		if c.Old != nil {
			if was = b.found[c.Key]; was == nil || was.from != int64(c.Old.LastModifiedAtBlock) {
				return fmt.Errorf("%w: block %d changes a version of %s that is not there", driver.ErrCorrupt, b.set.Block, c.Key)
			}
			ch.oldID, ch.oldFrom = was.id, was.from
		}
		if c.New == nil {
			continue
		}
		if c.Old != nil && c.Old.Sequence == c.New.Sequence {
			ch.newID = was.id
		} else {
			created = append(created, i)
		}
		ch.next.content = b.content(c, was)
	}
	b.number(created)
	buf := make([]byte, 0, 512*len(b.list))
	for i := range b.list {
		ch, e := &b.list[i], b.set.Changes[i].New
		if e == nil {
			continue
		}
		ch.next.id, ch.next.key = ch.newID, ch.key
		ch.next.from, ch.next.expires = int64(b.set.Block), int64(e.Expiration)
		ch.next.to = ch.next.expires
		start := len(buf)
		buf = pack(buf, e, b.name)
		ch.next.data = buf[start:len(buf):len(buf)]
	}
	return nil
}

// findOld finds the versions that the block ends, as far as Prior has not.
func (b *block) findOld(ctx context.Context) error {
	var unknown []entity.Key
	for i := range b.set.Changes {
		if c := &b.set.Changes[i]; c.Old != nil && b.found[c.Key] == nil {
			unknown = append(unknown, c.Key)
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	found, _, err := b.live(ctx, unknown)
	maps.Copy(b.found, found)
	return err
}

// content returns the number of a version's payload: that of the old one when it is kept.
func (b *block) content(c *entity.Change, was *version) int64 {
	if c.ContentKept && was != nil {
		return was.content
	}
	if len(c.New.Content) == 0 {
		return 0
	}
	no := b.p.nextContent
	b.p.nextContent++
	b.rows = append(b.rows, no, c.New.Content)
	return no
}

// number gives ids to new entities, in the order of their sequences, so that
// the order of ids stays the order of results: newest first, then by key.
func (b *block) number(created []int) {
	slices.SortFunc(created, func(i, j int) int {
		x, y := b.set.Changes[i].New, b.set.Changes[j].New
		return cmp.Or(cmp.Compare(x.Sequence, y.Sequence), bytes.Compare(y.Key[:], x.Key[:]))
	})
	for n, i := range created {
		sequence := b.set.Changes[i].New.Sequence
		if n == 0 && b.p.nextID > 1 && sequence <= b.p.lastSequence {
			b.p.unordered = 1 // the history was pruned where it comes from
		}
		b.p.lastSequence = max(b.p.lastSequence, sequence)
		b.list[i].newID = b.p.nextID
		b.p.nextID++
	}
}

// name returns the number of a name, a new one if it has none.
func (b *block) name(kind nameKind, text string) int64 {
	id, added := b.names.add(kind, text)
	if added {
		b.p.names = id
		b.newNames = append(b.newNames, id, int64(kind), []byte(text))
	}
	return id
}

// write makes the rows and moves the tip.
func (b *block) write(ctx context.Context) error {
	// A log says only the numbers of names: the tip is over new ones as well.
	var names []byte
	for i := 0; i < len(b.newNames); i += 3 {
		names = binary.AppendVarint(names, b.newNames[i+1].(int64))
		names = packed.AppendText(names, b.newNames[i+2].([]byte))
	}
	stored := encodeChanges(b.list)
	no := int64(b.set.Block)
	b.p.tip = b.p.tip.next("block", binary.BigEndian.AppendUint64(nil, b.set.Block), stored, names)
	b.p.last = no
	b.p.backlog += int64(len(b.list))
	if err := b.tx.Insert(ctx, namesTable, b.newNames); err != nil {
		return err
	}
	if err := b.tx.Insert(ctx, contentTable, b.rows); err != nil {
		return err
	}
	if err := b.tx.Insert(ctx, logTable, []any{no, b.p.tip[:], stored}); err != nil {
		return err
	}
	// The data of all versions share one buffer, which the node retains.
	n := newNode(no, b.p.tip, b.list, b.nodes)
	b.chain = &chain{tip: b.p.tip, floor: b.p.merged, nodes: slices.Concat(b.nodes, []*node{n})}
	b.nodes = b.chain.nodes
	b.l.chains.keep(b.chain)
	return nil
}
