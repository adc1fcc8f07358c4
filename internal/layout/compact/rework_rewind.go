package compact

import (
	"context"
	"encoding/binary"
	"slices"

	"github.com/varvedb/varve/internal/lsm"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
)

// Rewind implements layout.Writer. It reads what is taken back and nothing else: blocks
// of which nothing is merged leave the log, others what was made of them.
func (w *writer) Rewind(ctx context.Context, _ uint64, to int64) error {
	if to >= max(w.p.merged, w.p.merging) {
		if err := w.unwrite(ctx, to); err != nil {
			return err
		}
		w.rewound(to)
		return w.l.writeProgress(ctx, w.tx, &w.p)
	}
	return w.rework(ctx, "rewind", uint64(to), func(r *rework) error {
		ids, err := r.changedAbove(ctx, to)
		if err != nil {
			return err
		}
		w.rewound(to)
		w.p.merged = to
		// What ended above the block is current again, and so is what runs out above it.
		back := func(s state) (next state) {
			for _, v := range s.all() {
				switch {
				case v.from > to:
				case v == s.current || v.to > to:
					next.current = v
				default:
					next.closed = append(next.closed, v)
				}
			}
			return next
		}
		for some := range slices.Chunk(ids, maxPerStatement) {
			if err := r.entities(ctx, some, back); err != nil {
				return err
			}
		}
		return nil
	})
}

// rewound notes that a block is the last one. The numbers of what is gone are not given again.
func (w *writer) rewound(to int64) {
	w.p.last = to
	w.p.lastSequence = min(w.p.lastSequence, max(entity.MakeSequence(uint64(to+1), 0, 0), 1)-1)
}

// unwrite takes the blocks above one out of the log, and their payloads.
func (w *writer) unwrite(ctx context.Context, to int64) error {
	kept := w.nodes
	if i := slices.IndexFunc(kept, func(n *node) bool { return n.block > to }); i >= 0 {
		kept = kept[:i:i]
	}
	contents, err := w.contentsOf(ctx, w.nodes[len(kept):], to)
	if err != nil {
		return err
	}
	if err := w.l.sql.ExecIn(ctx, w.tx, "delete_contents", 1, contents); err != nil {
		return err
	}
	if err := w.l.sql.Exec(ctx, w.tx, "drop_log", to); err != nil {
		return err
	}
	for _, n := range w.nodes[len(kept):] {
		w.p.backlog -= int64(len(n.changes))
	}
	if len(kept) > 0 {
		w.p.tip = kept[len(kept)-1].tip
	} else {
		w.p.tip = w.p.tip.next("rewind", binary.BigEndian.AppendUint64(nil, uint64(to)))
	}
	w.chain = &chain{tip: w.p.tip, floor: w.p.merged, nodes: kept}
	w.nodes, w.over, w.found = kept, nil, map[entity.Key]*version{}
	w.l.prepared.set(nil) // it may be of blocks that are gone
	return nil
}

// contentsOf returns the payloads that nodes have brought: those that were kept from
// versions of a block and before are not theirs.
func (w *writer) contentsOf(ctx context.Context, nodes []*node, to int64) (list []any, err error) {
	brought := map[int64]bool{}
	var ids []any // of versions in the tables
	for _, n := range nodes {
		for i := range n.changes {
			c := &n.changes[i]
			if c.newID != 0 && c.next.content != 0 {
				brought[c.next.content] = true
			}
			if c.oldID != 0 && c.oldFrom <= to {
				ids = append(ids, c.oldID)
			}
		}
	}
	err = w.l.versionsIn(ctx, w.q, "current_by_id", ids, nil, func(v *version) error {
		brought[v.content] = false
		return nil
	})
	for _, n := range w.nodes[:len(w.nodes)-len(nodes)] {
		for i := range n.changes {
			brought[n.changes[i].next.content] = false
		}
	}
	for no, theirs := range brought {
		if theirs {
			list = append(list, no)
		}
	}
	return list, err
}

// changedAbove returns the entities, once each, of which versions begin or end above a
// block, when everything is merged. Postings tell which begin, which is what most of the
// others end for, and which ran out; the rest was ended by operations.
func (r *rework) changedAbove(ctx context.Context, block int64) (ids []any, err error) {
	var list []int64
	lo, hi := encodeNumber(uint64(block+1)), encodeNumber(uint64(r.p.merged+1))
	for _, space := range []uint32{attrModified, attrModified | past, attrExpiration | past} {
		for p, err := range r.l.postings.Walk(ctx, r.tx, &r.p.tree, lsm.Within(space, lo, hi), false) {
			if err == nil {
				list, err = p.AppendIDs(list)
			}
			if err != nil {
				return nil, err
			}
		}
	}
	err = r.l.sql.Each(ctx, r.tx, "ended_above", []any{block}, func(rows driver.Rows) error {
		var id int64
		err := rows.Scan(&id)
		list = append(list, id)
		return err
	})
	slices.Sort(list)
	for _, id := range slices.Compact(list) {
		ids = append(ids, id)
	}
	return ids, err
}
