package compact

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/varvedb/varve/internal/packed"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
)

// Write implements layout.Layout: payloads and one row of the log.
func (l *Layout) Write(ctx context.Context, tx driver.Tx, set entity.Changeset) error {
	if len(set.Changes) == 0 {
		return nil
	}
	v, s, err := l.writeView(ctx, tx, set.Block)
	if err != nil {
		return err
	}
	l.setScratch(nil) // until the block is written, what it adds is nobody's
	w := &writer{view: v, scratch: s, set: set, p: v.p}
	if err := w.changes(ctx); err != nil {
		return err
	}
	if err := w.write(ctx, tx); err != nil {
		return err
	}
	l.remember(&w.p)
	return l.relieve(ctx, tx, int(w.p.backlog), len(w.list))
}

// writer turns a changeset into a row of the log.
type writer struct {
	view     *view
	scratch  *scratch
	set      entity.Changeset
	p        progress // as it becomes
	list     []change
	contents []any // rows
	newNames []any // rows
}

// changes gives numbers to entities, payloads and names.
func (w *writer) changes(ctx context.Context) error {
	old, err := w.oldVersions(ctx)
	if err != nil {
		return err
	}
	w.list = make([]change, len(w.set.Changes))
	var created []int
	for i := range w.set.Changes {
		c, ch := &w.set.Changes[i], &w.list[i]
		ch.key = c.Key
		var was *version
		if c.Old != nil {
			if was = old[c.Key]; was == nil || was.from != int64(c.Old.LastModifiedAtBlock) {
				return fmt.Errorf("%w: block %d changes a version of %s that is not there", driver.ErrCorrupt, w.set.Block, c.Key)
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
		ch.next.content = w.content(c, was)
	}
	w.number(created)
	buf := make([]byte, 0, 512*len(w.list))
	for i := range w.list {
		ch, e := &w.list[i], w.set.Changes[i].New
		if e == nil {
			continue
		}
		ch.next.id, ch.next.key = ch.newID, ch.key
		ch.next.from, ch.next.expires = int64(w.set.Block), int64(e.Expiration)
		start := len(buf)
		buf = pack(buf, e, w.name)
		ch.next.data = buf[start:len(buf):len(buf)]
	}
	return nil
}

// oldVersions returns the versions that the block ends, by key.
func (w *writer) oldVersions(ctx context.Context) (map[entity.Key]*version, error) {
	var unknown []entity.Key
	for i := range w.set.Changes {
		c := &w.set.Changes[i]
		if c.Old != nil && w.scratch.found[c.Key] == nil {
			unknown = append(unknown, c.Key)
		}
	}
	if len(unknown) == 0 {
		return w.scratch.found, nil
	}
	found, err := w.view.live(ctx, unknown)
	if err != nil {
		return nil, fmt.Errorf("read live versions: %w", err)
	}
	for key, v := range w.scratch.found {
		found[key] = v
	}
	return found, nil
}

// content returns the number of a version's payload: that of the old one when
// it is kept.
func (w *writer) content(c *entity.Change, was *version) int64 {
	if c.ContentKept && was != nil {
		return was.content
	}
	if len(c.New.Content) == 0 {
		return 0
	}
	no := w.p.nextContent
	w.p.nextContent++
	w.contents = append(w.contents, no, c.New.Content)
	return no
}

// number gives ids to new entities, in the order of their sequences, so that
// the order of ids stays the order of results: newest first, then by key.
func (w *writer) number(created []int) {
	slices.SortFunc(created, func(a, b int) int {
		ea, eb := w.set.Changes[a].New, w.set.Changes[b].New
		if ea.Sequence != eb.Sequence {
			if ea.Sequence < eb.Sequence {
				return -1
			}
			return 1
		}
		return bytes.Compare(eb.Key[:], ea.Key[:])
	})
	for n, i := range created {
		sequence := w.set.Changes[i].New.Sequence
		if n == 0 && w.p.nextID > 1 && sequence <= w.p.lastSequence {
			w.p.unordered = 1 // the history was pruned where it comes from
		}
		w.p.lastSequence = max(w.p.lastSequence, sequence)
		w.list[i].newID = w.p.nextID
		w.p.nextID++
	}
}

// name returns the number of a name, a new one if it has none.
func (w *writer) name(kind nameKind, text string) int64 {
	id, added := w.scratch.names.add(kind, text)
	if added {
		w.p.names = id
		w.newNames = append(w.newNames, id, int64(kind), []byte(text))
	}
	return id
}

// write makes the rows and moves the tip.
func (w *writer) write(ctx context.Context, tx driver.Tx) error {
	stored := encodeChanges(w.list)
	block := int64(w.set.Block)
	w.p.tip = w.p.tip.next("block", binary.BigEndian.AppendUint64(nil, w.set.Block), stored, w.namesText())
	w.p.last = block
	w.p.backlog += int64(len(w.list))
	if err := tx.Insert(ctx, namesTable, w.newNames); err != nil {
		return err
	}
	if err := tx.Insert(ctx, contentTable, w.contents); err != nil {
		return err
	}
	if err := tx.Insert(ctx, logTable, []any{block, w.p.tip[:], stored}); err != nil {
		return err
	}
	l := w.view.l
	if err := l.writeProgress(ctx, tx, &w.p); err != nil {
		return err
	}
	// Their data is a part of one buffer, which the node keeps.
	n := newNode(block, w.p.tip, w.list)
	n.follow(w.view.nodes)
	nodes := slices.Concat(w.view.nodes, []*node{n})
	l.keep(&chain{tip: w.p.tip, floor: w.p.merged, nodes: nodes})
	l.setScratch(&scratch{tip: w.p.tip, names: w.scratch.names, found: map[entity.Key]*version{}})
	return nil
}

// namesText is the new names as they go into the tip: a log says only their
// numbers.
func (w *writer) namesText() (text []byte) {
	for i := 0; i < len(w.newNames); i += 3 {
		text = binary.AppendVarint(text, w.newNames[i+1].(int64))
		text = packed.AppendText(text, w.newNames[i+2].([]byte))
	}
	return text
}
