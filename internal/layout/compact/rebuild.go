package compact

import (
	"context"
	"fmt"
	"slices"

	"github.com/varvedb/varve/store/driver"
)

// Tables implements layout.Layout.
func (l *Layout) Tables() []*driver.Table {
	return []*driver.Table{
		progressTable, logTable, namesTable, contentTable, currentTable, closedTable, keysTable, treeTables[pastTree], treeTables[currentTree],
	}
}

// Rebuild implements layout.Layout. The log is merged first; then the postings, the
// keys and the count are made from the versions. No posting is read that may be damaged.
func (l *Layout) Rebuild(ctx context.Context, tx driver.Tx, _ driver.Querier) error {
	if _, err := l.clearPostings(ctx, tx); err != nil {
		return err
	}
	l.forgetPlans() // they know of postings
	if err := l.drain(ctx, tx); err != nil {
		return fmt.Errorf("merge what is left: %w", err)
	}
	p, err := l.clearPostings(ctx, tx)
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, "DELETE FROM "+keysTable.Name); err != nil {
		return fmt.Errorf("empty %s: %w", keysTable.Name, err)
	}
	r := rebuilder{l: l, tx: tx, p: p}
	if p.live, err = r.versions(ctx, "scan_current_above", int64(none)); err != nil {
		return err
	}
	if _, err = r.versions(ctx, "scan_closed"); err != nil {
		return err
	}
	if err := l.compactNow(ctx, tx, p); err != nil {
		return err
	}
	return l.writeProgress(ctx, tx, p)
}

// clearPostings empties both trees, whatever is in them, and gives up the batch that is
// being merged, if there is one: its blocks are merged from their beginning.
func (l *Layout) clearPostings(ctx context.Context, tx driver.Tx) (*progress, error) {
	p, err := l.readProgress(ctx, tx)
	if err != nil {
		return nil, err
	}
	for i := range p.trees {
		if _, err := tx.Exec(ctx, "DELETE FROM "+treeTables[i].Name); err != nil {
			return nil, fmt.Errorf("empty %s: %w", treeTables[i].Name, err)
		}
		p.trees[i] = tree{next: p.trees[i].next}
	}
	p.merging, p.step = none, 0
	return &p, l.writeProgress(ctx, tx, &p)
}

// rebuilder makes postings of versions, as many together as a batch has.
type rebuilder struct {
	l    *Layout
	tx   driver.Tx
	p    *progress
	list []*version
}

// versions takes all that a statement gives, and counts them.
func (r *rebuilder) versions(ctx context.Context, scan string, args ...any) (n int64, err error) {
	closed := scan == "scan_closed"
	err = r.l.pages(ctx, r.tx, scan, args, closed, func(list []*version) error {
		n += int64(len(list))
		if r.list = append(r.list, list...); len(r.list) < r.l.opts.Batch {
			return nil
		}
		return r.flush(ctx, closed)
	})
	if err != nil {
		return 0, err
	}
	return n, r.flush(ctx, closed)
}

// flush writes a run of the versions that wait, and their keys. Of closed ones past
// postings have what the entity no longer has.
func (r *rebuilder) flush(ctx context.Context, closed bool) error {
	now := map[int64][]term{}
	if closed {
		err := r.l.eachCurrent(ctx, r.tx, r.list, func(v *version) (err error) {
			now[v.id], err = v.terms()
			return err
		})
		if err != nil {
			return err
		}
	}
	var edits []edit
	var keys []any
	for i, v := range r.list {
		terms, err := v.terms()
		if err != nil {
			return fmt.Errorf("entity %s, version of block %d: %w", v.key, v.from, err)
		}
		for _, t := range terms {
			if !slices.Contains(now[v.id], t) {
				edits = append(edits, edit{term: t, past: closed, id: v.id, add: true})
			}
		}
		if i == 0 || v.id != r.list[i-1].id {
			keys = append(keys, hashKey(v.key), v.id)
		}
	}
	r.list = nil
	if err := r.l.addRun(ctx, r.tx, r.p, edits); err != nil {
		return fmt.Errorf("write postings: %w", err)
	}
	if err := r.l.eachExec(ctx, r.tx, "insert_keys", 2, keys); err != nil {
		return fmt.Errorf("write keys: %w", err)
	}
	return nil
}

// eachCurrent calls f with the current versions of the entities that versions are of.
func (l *Layout) eachCurrent(ctx context.Context, q driver.Querier, list []*version, f func(*version) error) error {
	return l.eachQuery(ctx, q, "current_by_id", 1, idsOf(list), nil, func(rows driver.Rows) error {
		v, err := scanVersion(rows)
		if err != nil {
			return err
		}
		return f(v)
	})
}

// idsOf returns the entities that versions in the order of ids are of.
func idsOf(list []*version) (ids []any) {
	for i, v := range list {
		if i == 0 || list[i-1].id != v.id {
			ids = append(ids, v.id)
		}
	}
	return ids
}
