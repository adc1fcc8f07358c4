package compact

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/varvedb/varve/internal/bitmap"
	"github.com/varvedb/varve/internal/lsm"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
)

// Prune implements layout.Writer.
func (w *writer) Prune(ctx context.Context, before uint64) error {
	return w.rework(ctx, "prune", before, func(r *rework) error {
		at := int64(before)
		return r.each(ctx, "ids_below", at, func(s state) (next state) {
			for _, v := range s.all() {
				switch {
				case v.to <= at:
				case v == s.current:
					next.current = v
				default:
					next.closed = append(next.closed, v)
				}
			}
			return next
		})
	})
}

// rework merges the log, runs f on the tables alone and gives the store a new tip.
func (w *writer) rework(ctx context.Context, what string, block uint64, f func(*rework) error) error {
	if err := w.l.drain(ctx, w.tx, w.view); err != nil {
		return err
	}
	r := &rework{l: w.l, tx: w.tx, p: &w.p, waiting: bitmap.Set{}, gone: bitmap.Set{}}
	if err := r.findWaiting(ctx); err != nil {
		return err
	}
	if err := f(r); err != nil {
		return err
	}
	if err := r.flushFrom(ctx, 0); err != nil {
		return err
	}
	if err := r.dropKeys(ctx); err != nil {
		return err
	}
	w.p.tip = w.p.tip.next(what, binary.BigEndian.AppendUint64(nil, block))
	w.chain = &chain{tip: w.p.tip, floor: w.p.merged}
	w.nodes, w.over, w.keys, w.found = nil, nil, nil, map[entity.Key]*version{}
	return w.l.writeProgress(ctx, w.tx, &w.p)
}

// rework changes what is stored of entities, when everything is merged.
type rework struct {
	l     *Layout
	tx    driver.Tx
	p     *progress
	edits []lsm.Edit
	keys  []any // rows of Rebuild

	waiting, gone bitmap.Set // entities whose keys wait, and of which nothing is left
}

// reworkEdits bounds the edits that are held in memory: they are written together.
const reworkEdits = 1 << 17

// each replaces the states of the entities that a statement returns for a block by
// what f returns.
func (r *rework) each(ctx context.Context, ids string, block int64, f func(state) state) error {
	for above := int64(0); ; {
		var list []any
		err := r.l.sql.Each(ctx, r.tx, ids, []any{above, block, above, block, int64(maxPerStatement)}, func(rows driver.Rows) error {
			err := rows.Scan(&above)
			list = append(list, above)
			return err
		})
		if err != nil || len(list) == 0 {
			return err
		}
		if err := r.entities(ctx, list, f); err != nil {
			return err
		}
	}
}

// entities replaces the states of entities by what f returns.
func (r *rework) entities(ctx context.Context, ids []any, f func(state) state) error {
	states := map[int64]*state{}
	for _, name := range versionsByID {
		if err := r.l.versionsIn(ctx, r.tx, name, ids, nil, gather(states, name == versionsByID[0])); err != nil {
			return err
		}
	}
	return r.change(ctx, ids, states, f)
}

// gather puts versions into the states of their entities.
func gather(states map[int64]*state, current bool) func(*version) error {
	return func(v *version) error {
		s := states[v.id]
		if s == nil {
			s = &state{}
			states[v.id] = s
		}
		if current {
			s.current = v
		} else {
			s.closed = append(s.closed, v)
		}
		return nil
	}
}

// change writes what differs between states and what f makes of them: versions, payloads,
// keys of entities of which nothing is left, and postings.
func (r *rework) change(ctx context.Context, ids []any, states map[int64]*state, f func(state) state) (err error) {
	var dropped, contents, current []any
	for _, id := range ids {
		id := id.(int64)
		s := states[id]
		if s == nil {
			continue
		}
		next := f(*s)
		if next.current != s.current {
			if s.current != nil {
				dropped = append(dropped, id)
				r.p.live--
			}
			if next.current != nil {
				current = currentRow(current, next.current)
				r.p.live++
			}
		}
		kept := map[int64]bool{0: true}
		for _, v := range next.all() {
			kept[v.content] = true
		}
		for _, v := range s.all() {
			if !kept[v.content] {
				kept[v.content] = true
				contents = append(contents, v.content)
			}
			if v != s.current && !slices.Contains(next.closed, v) {
				if err := r.l.sql.Exec(ctx, r.tx, "delete_closed", id, v.from); err != nil {
					return err
				}
			}
		}
		if len(next.all()) == 0 {
			if r.waiting.Has(id) {
				r.gone.Add(id)
			}
			if err := r.l.sql.Exec(ctx, r.tx, "delete_key", hashKey(s.all()[0].key), id); err != nil {
				return err
			}
		}
		if r.edits, err = appendEdits(r.edits, id, s, &next); err != nil {
			return err
		}
	}
	if err := r.l.putVersions(ctx, r.tx, dropped, current, nil); err != nil {
		return err
	}
	if err := r.l.sql.ExecIn(ctx, r.tx, "delete_contents", 1, contents); err != nil {
		return err
	}
	return r.flushFrom(ctx, reworkEdits)
}

// flushFrom writes a run of the edits so far, when these are so many, and the keys.
func (r *rework) flushFrom(ctx context.Context, n int) error {
	if len(r.edits) < n {
		return nil
	}
	edits, keys := r.edits, r.keys
	r.edits, r.keys = nil, nil
	if err := r.tx.Insert(ctx, keysTable, keys); err != nil {
		return err
	}
	if err := r.l.postings.Write(ctx, r.tx, &r.p.tree, edits); err != nil {
		return fmt.Errorf("write postings: %w", err)
	}
	if r.p.tree.Runs() <= maxRuns {
		return nil
	}
	return r.l.postings.CompactAll(ctx, r.tx, &r.p.tree)
}

// Rebuild implements layout.Layout. The log is merged first; then the postings, the
// keys and the count are made from the versions. It reads no old posting, because
// it may be damaged.
func (l *Layout) Rebuild(ctx context.Context, tx driver.Tx, _ driver.Querier) error {
	v, err := l.newView(ctx, tx, 0)
	if err != nil {
		return err
	}
	// What is being merged is given up: its blocks are merged from their beginning.
	empty := func() error {
		v.p.tree.Clear()
		v.p.keys = recentKeys{}
		v.p.merging, v.p.step = none, 0
		l.prepared.set(nil) // it has postings of the old tree
		return errors.Join(l.sql.Exec(ctx, tx, "drop_runs"), l.sql.Exec(ctx, tx, "delete_keys"))
	}
	if err := empty(); err != nil {
		return err
	}
	if err := l.drain(ctx, tx, v); err != nil {
		return fmt.Errorf("merge what is left: %w", err)
	}
	if err := empty(); err != nil {
		return err
	}
	r := &rework{l: l, tx: tx, p: &v.p}
	v.p.live = 0
	err = l.eachState(ctx, tx, v.p.nextID, func(id int64, s *state) (err error) {
		if s.current != nil {
			v.p.live++
		}
		key := s.all()[0].key
		r.keys = append(r.keys, hashKey(key), id)
		if r.edits, err = appendEdits(r.edits, id, &state{}, s); err != nil {
			return fmt.Errorf("entity %s: %w", key, err)
		}
		return r.flushFrom(ctx, reworkEdits)
	})
	if err != nil {
		return err
	}
	if err := r.flushFrom(ctx, 0); err != nil {
		return err
	}
	if err := l.postings.CompactAll(ctx, tx, &v.p.tree); err != nil {
		return err
	}
	return l.writeProgress(ctx, tx, &v.p)
}

// eachState calls f with each entity that is in the tables, whose numbers are below one.
func (l *Layout) eachState(ctx context.Context, q driver.Querier, below int64, f func(id int64, s *state) error) error {
	for from := int64(1); from < below; from += maxPerStatement {
		states := map[int64]*state{}
		for _, name := range versionsBetween {
			if err := l.versions(ctx, q, name, []any{from, from + maxPerStatement}, gather(states, name == versionsBetween[0])); err != nil {
				return err
			}
		}
		for id := from; id < from+maxPerStatement; id++ {
			if s := states[id]; s != nil {
				if err := f(id, s); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
