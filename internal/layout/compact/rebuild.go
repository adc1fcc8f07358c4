package compact

import (
	"context"
	"fmt"

	"github.com/varvedb/varve/store/driver"
)

// The tables that only statements of their own write.
var (
	keysTable = table("entity_keys", ints("hash", "id"))
	setsTable = map[string]*driver.Table{
		"current": table("current_postings", ints("attr"), blobs("value"), ints("chunk"), blobs("ids")),
		"past":    table("past_postings", ints("attr"), blobs("value"), ints("chunk"), blobs("ids")),
	}
)

// Tables implements layout.Layout.
func (l *Layout) Tables() []*driver.Table {
	return []*driver.Table{
		progressTable, logTable, namesTable, contentTable, currentTable, closedTable, keysTable, setsTable["current"], setsTable["past"],
	}
}

// Rebuild implements layout.Layout. The log is merged first; then the sets of ids,
// the keys and the count are made from the versions, one range of ids at a time.
func (l *Layout) Rebuild(ctx context.Context, tx driver.Tx, _ driver.Querier) error {
	if err := l.drain(ctx, tx); err != nil {
		return fmt.Errorf("merge what is left: %w", err)
	}
	for _, t := range []*driver.Table{keysTable, setsTable["current"], setsTable["past"]} {
		if _, err := tx.Exec(ctx, "DELETE FROM "+t.Name); err != nil {
			return fmt.Errorf("empty %s: %w", t.Name, err)
		}
	}
	live, err := l.rebuildSets(ctx, tx, "current", "scan_current_above", []any{int64(none)})
	if err != nil {
		return err
	}
	if _, err := l.rebuildSets(ctx, tx, "past", "scan_closed", nil); err != nil {
		return err
	}
	p, err := l.readProgress(ctx, tx)
	if err != nil {
		return err
	}
	p.live = live
	return l.writeProgress(ctx, tx, &p)
}

// rebuildSets makes the sets of a table of versions and counts these.
func (l *Layout) rebuildSets(ctx context.Context, tx driver.Tx, sets, scan string, args []any) (n int64, err error) {
	r := rebuilder{l: l, tx: tx, sets: sets, groups: map[setKey]*chunk{}}
	err = l.pages(ctx, tx, scan, args, sets == "past", func(list []*version) error {
		n += int64(len(list))
		for _, v := range list {
			if err := r.add(ctx, v); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		err = r.flush(ctx)
	}
	return n, err
}

// rebuilder collects the sets of one chunk of ids.
type rebuilder struct {
	l      *Layout
	tx     driver.Tx
	sets   string
	chunk  int64
	last   int64 // id
	keys   []any
	groups map[setKey]*chunk
}

func (r *rebuilder) add(ctx context.Context, v *version) error {
	if at := chunkOf(v.id); at != r.chunk {
		if err := r.flush(ctx); err != nil {
			return err
		}
		r.chunk = at
	}
	terms, err := v.terms()
	if err != nil {
		return fmt.Errorf("entity %s, version of block %d: %w", v.key, v.from, err)
	}
	for _, t := range terms {
		key := setKey{term: t, chunk: r.chunk}
		if r.groups[key] == nil {
			r.groups[key] = new(chunk)
		}
		r.groups[key].set(offsetOf(v.id))
	}
	if v.id != r.last {
		r.last = v.id
		r.keys = append(r.keys, hashKey(v.key), v.id)
	}
	return nil
}

// flush writes the sets of the chunk: of past values those that the entity no
// longer has.
func (r *rebuilder) flush(ctx context.Context) error {
	if r.sets == "past" {
		if err := r.subtractCurrent(ctx); err != nil {
			return err
		}
	}
	rows := make([]any, 0, 4*len(r.groups))
	for key, c := range r.groups {
		if ids := c.encode(); len(ids) > 0 {
			rows = append(rows, key.attr, []byte(key.value), key.chunk, ids)
		}
	}
	if err := r.l.eachExec(ctx, r.tx, "put_"+r.sets+"_postings", 4, rows); err != nil {
		return fmt.Errorf("write sets of ids: %w", err)
	}
	if err := r.l.eachExec(ctx, r.tx, "insert_keys", 2, r.keys); err != nil {
		return fmt.Errorf("write keys: %w", err)
	}
	r.keys = nil
	clear(r.groups)
	return nil
}

func (r *rebuilder) subtractCurrent(ctx context.Context) error {
	args := make([]any, 0, 3*len(r.groups))
	for key := range r.groups {
		args = append(args, key.attr, []byte(key.value), key.chunk)
	}
	return r.l.eachQuery(ctx, r.tx, "current_postings_list", 3, args, nil, func(rows driver.Rows) error {
		var key setKey
		var value, stored []byte
		if err := rows.Scan(&key.attr, &value, &key.chunk, &stored); err != nil {
			return err
		}
		key.value = string(value)
		var has chunk
		if err := has.merge(stored); err != nil {
			return err
		}
		for i := range has {
			r.groups[key][i] &^= has[i]
		}
		return nil
	})
}
