package compact

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/varvedb/varve/internal/layout"
	"github.com/varvedb/varve/internal/statement"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
)

// view is what a querier sees at a block: the tables, and over them the blocks of the log
// that are not merged in it. What it reads when it is opened does not change.
type view struct {
	l     *Layout
	q     driver.Querier
	p     progress
	at    int64
	past  bool // at is below the last change, so closed versions count
	chain *chain
	nodes []*node // of the chain, not merged in this view
	names *names
	over  *overlay // see overlay
	keys  keyLists // see recentIDs
}

// View implements layout.Layout.
func (l *Layout) View(ctx context.Context, q driver.Querier, at uint64) (layout.View, error) {
	v, err := l.newView(ctx, q, at)
	if err != nil {
		return nil, err // not a nil view
	}
	return v, l.loadNames(ctx, q, v.names, v.p.names)
}

// newView returns a view that may lack names.
func (l *Layout) newView(ctx context.Context, q driver.Querier, at uint64) (v *view, err error) {
	v = &view{l: l, q: q, names: l.committed}
	if v.p, err = l.readProgress(ctx, q); err != nil {
		return nil, err
	}
	if v.chain, err = l.chainAt(ctx, q, &v.p); err != nil {
		return nil, err
	}
	v.move(at)
	l.lastSeen.set(v.nodes)
	return v, nil
}

// move makes it a view at a block.
func (v *view) move(at uint64) {
	v.at = int64(min(at, entity.MaxBlock))
	v.past = v.at < v.p.last
	v.nodes = after(v.chain.nodes, v.p.merged)
	v.over = nil
}

func (v *view) overlay() *overlay {
	if v.over == nil {
		v.over = v.chain.overlay(&v.p, v.at)
	}
	return v.over
}

// Statements give versions in the tables: current ones, and then closed ones.
var (
	versionsByKey   = []string{"current_by_key", "closed_by_key"}
	visibleByKey    = []string{"current_at", "closed_at"} // with their payloads
	versionsByID    = []string{"current_by_id", "closed_by_id"}
	visibleByID     = []string{"current_of_id", "closed_of_id"} // with their payloads
	versionsBetween = []string{"current_between", "closed_between"}
)

// find returns the version of a key that is visible in the view, or nil, and its payload.
func (v *view) find(ctx context.Context, key entity.Key) (found *version, content []byte, err error) {
	if c := lookup(v.nodes, v.at, key); c != nil {
		if c.newID != 0 && c.next.visible(v.at) {
			found = &c.next
		}
	} else if found, err = v.findMerged(ctx, key); err != nil {
		return nil, nil, err
	}
	switch {
	case found == nil:
		return nil, nil, nil
	case found.content != 0 && found.payload == nil:
		contents, err := v.contents(ctx, []*version{found})
		return found, contents[found.content], err
	}
	return found, found.payload, nil
}

// findMerged is find in the tables.
func (v *view) findMerged(ctx context.Context, key entity.Key) (found *version, err error) {
	hash := hashKey(key)
	waiting, err := v.recentIDs(ctx, []any{hash})
	if err != nil {
		return nil, err
	}
	for _, id := range waiting {
		if found, err = v.findVisible(ctx, key, versionsByID, visibleByID, id); found != nil || err != nil {
			return found, err
		}
	}
	return v.findVisible(ctx, key, versionsByKey, visibleByKey, hash)
}

// findVisible is findMerged by an id or a hash, with statements that read the payload
// apart, or together with the version.
func (v *view) findVisible(ctx context.Context, key entity.Key, apart, whole []string, arg any) (found *version, err error) {
	statements, args, dest := apart, []any{arg}, []any(nil)
	var payload []byte
	if !v.l.opts.Apart {
		statements, args, dest = whole, append(args, v.at, v.at), []any{&payload}
	}
	for i, name := range statements {
		if found != nil || i > 0 && !v.past {
			break
		}
		err := v.l.sql.EachOf(ctx, v.q, name, 1, args, func(rows driver.Rows) error {
			r, err := scanVersion(rows, dest...)
			if err == nil && r.key == key && r.visible(v.at) {
				found, r.payload = r, payload
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// Get implements layout.View.
func (v *view) Get(ctx context.Context, key entity.Key) (*entity.Entity, error) {
	v.random(true)
	found, content, err := v.find(ctx, key)
	if err != nil {
		return nil, err
	}
	if found == nil {
		return nil, entity.ErrNotFound
	}
	e, err := found.entity(v.names.list(), true)
	if err != nil {
		return nil, err
	}
	e.Content = content
	return e, nil
}

// versionsPage is how many versions of a key are read at once, without payloads.
const versionsPage = 64

// Versions implements layout.View: the log from its end, and then the tables.
func (v *view) Versions(ctx context.Context, key entity.Key) iter.Seq2[entity.Version, error] {
	return func(yield func(entity.Version, error) bool) {
		// The tables do not know of ends in the log, nor an earlier block of the log of
		// ends in a later one.
		var closing entity.Closing
		give := func(r *version) bool {
			found := entity.Version{End: uint64(r.to)}
			if closing.From == uint64(r.from) && closing.Block > 0 {
				found.End = closing.Block
			}
			contents, err := v.contents(ctx, []*version{r})
			if err == nil {
				found.Entity, err = r.entity(v.names.list(), true)
			}
			if err == nil {
				found.Entity.Content = contents[r.content]
			}
			return yield(found, err) && err == nil
		}
		for _, n := range slices.Backward(v.nodes) {
			i, changed := n.byKey[key]
			if !changed {
				continue
			}
			c := &n.changes[i]
			if c.newID != 0 && c.next.from <= v.at && !give(&c.next) {
				return
			}
			if c.oldID != 0 {
				closing = entity.Closing{Block: uint64(n.block), From: uint64(c.oldFrom)}
			}
		}
		ids, err := v.entitiesOf(ctx, []any{hashKey(key)})
		if err != nil {
			yield(entity.Version{}, err)
			return
		}
		at := v.at
		for _, id := range slices.Backward(ids) { // numbers grow with blocks
			for more := true; more; {
				var page []*version
				args := []any{id, key[:], at, id, key[:], at, int64(versionsPage)}
				err := v.l.versions(ctx, v.q, "versions_down", args, func(r *version) error {
					page = append(page, r)
					return nil
				})
				if err != nil {
					yield(entity.Version{}, err)
					return
				}
				for _, r := range page {
					if !give(r) {
						return
					}
					at = r.from - 1
				}
				more = len(page) == versionsPage
			}
		}
	}
}

// random announces whether the statements of a call read here and there.
func (v *view) random(on bool) {
	if r, ok := v.q.(driver.Reader); ok {
		r.RandomAccess(on)
	}
}

// readAhead has the rows read from the disk together that the next statement reads,
// if rows came from a disk lately. It returns the time.
func (v *view) readAhead(ctx context.Context, t *driver.Table, ids []any) time.Time {
	if r, ok := v.q.(driver.Reader); ok && len(ids) > 1 && v.l.rowTime.slow() {
		r.ReadAhead(ctx, t.Name, ids)
	}
	return time.Now()
}

// contents returns the payloads of versions by number, and reads what is not there yet;
// number 0 is none.
func (v *view) contents(ctx context.Context, list []*version) (map[int64][]byte, error) {
	var args []any
	wanted := map[int64][]byte{}
	for _, r := range list {
		if _, ok := wanted[r.content]; !ok && r.content != 0 {
			if wanted[r.content] = r.payload; r.payload == nil {
				args = append(args, r.content)
			}
		}
	}
	v.readAhead(ctx, contentTable, args)
	err := v.l.sql.EachIn(ctx, v.q, "contents", args, nil, func(rows driver.Rows) error {
		var no int64
		var content []byte
		err := rows.Scan(&no, &content)
		wanted[no] = content
		return err
	})
	if err != nil {
		return nil, err
	}
	for no, content := range wanted {
		if content == nil {
			return nil, missingPayload(no)
		}
	}
	return wanted, nil
}

func missingPayload(no int64) error {
	return fmt.Errorf("%w: payload %d is missing", driver.ErrCorrupt, no)
}

// Rows implements layout.View. It counts versions, wherever they are: how many of them
// are in which table depends on the merge.
func (v *view) Rows(ctx context.Context) ([]layout.TableRows, error) {
	n, err := v.l.sql.Int(ctx, v.q, "count_versions")
	for _, node := range v.nodes {
		for i := range node.changes {
			if node.changes[i].newID != 0 {
				n++
			}
		}
	}
	return []layout.TableRows{{Table: "versions", Rows: uint64(n)}}, err
}

// Openings implements layout.View: the tables in the order of the database, then the log,
// all of whose blocks are above what the tables hold.
func (v *view) Openings(ctx context.Context) iter.Seq2[*entity.Entity, error] {
	return func(yield func(*entity.Entity, error) bool) {
		v.random(false)
		out := &output{v: v, attributes: true, content: true, yield: yield}
		stored := v.storedOpenings
		if v.l.opts.Apart {
			stored = v.pagedOpenings
		}
		more, err := stored(ctx, out)
		for _, n := range v.nodes {
			for i := 0; i < len(n.changes) && more && err == nil; i++ {
				if c := &n.changes[i]; c.newID != 0 {
					more, err = out.addWhole(ctx, &c.next)
				}
			}
		}
		switch {
		case err != nil:
			yield(nil, err)
		case more:
			out.flush(ctx)
		}
	}
}

// addWhole adds a version of which the record was not read.
func (o *output) addWhole(ctx context.Context, r *version) (more bool, err error) {
	rec, err := parse(r.data)
	if err != nil {
		return false, fmt.Errorf("entity %s, version of block %d: %w", r.key, r.from, err)
	}
	return o.add(ctx, r, rec.size), nil
}

// storedOpenings yields the versions in the tables by one statement, whose rows
// the engine streams.
func (v *view) storedOpenings(ctx context.Context, out *output) (more bool, err error) {
	dictionary := v.names.list()
	more = true
	err = v.l.sql.Each(ctx, v.q, "openings", nil, func(rows driver.Rows) error {
		var content []byte
		r, err := scanVersion(rows, &content)
		if err != nil {
			return err
		}
		if r.content != 0 && content == nil {
			return missingPayload(r.content)
		}
		e, err := r.entity(dictionary, true)
		if err != nil {
			return err
		}
		e.Content = content
		if more = out.yield(e, nil); !more {
			return statement.ErrEnough
		}
		return nil
	})
	return more, err
}

// openingsPage is how many versions pagedOpenings holds at once. With attributes
// of 64 KiB each they take 64 MiB, a quarter of the default memory.
const openingsPage = 1024

// pagedOpenings does it page by page, and reads payloads by their numbers, because
// DuckDB holds the whole result of a statement in memory: 21,000 versions with
// 210 MB of payloads did not fit the default of 256 MiB.
func (v *view) pagedOpenings(ctx context.Context, out *output) (more bool, err error) {
	block, key := int64(-1), []byte{}
	for {
		var page []*version
		err := v.l.versions(ctx, v.q, "openings_after", []any{block, block, key, int64(openingsPage)}, func(r *version) error {
			page = append(page, r)
			return nil
		})
		if err != nil || len(page) == 0 {
			return true, err
		}
		for _, r := range page {
			if more, err := out.addWhole(ctx, r); !more || err != nil {
				return false, err
			}
		}
		last := page[len(page)-1]
		block, key = last.from, last.key[:]
	}
}

// Closings implements layout.View.
func (v *view) Closings(ctx context.Context) iter.Seq2[entity.Closing, error] {
	return v.closings(ctx, v.nodes, "closings")
}

// ClosingsBetween implements layout.View. The tables are not read when the blocks are in the
// log, and read whole in stores from before there was an index of what was ended.
func (v *view) ClosingsBetween(ctx context.Context, from, to uint64) iter.Seq2[entity.Closing, error] {
	nodes := slices.Clone(v.nodes)
	merged := len(nodes) == 0 || uint64(nodes[0].block) > from
	nodes = slices.DeleteFunc(nodes, func(n *node) bool { return uint64(n.block) < from || uint64(n.block) > to })
	if !merged {
		return v.closings(ctx, nodes, "")
	}
	return v.closings(ctx, nodes, "closings_between", int64(from), int64(to))
}

// closings yields the ends that a statement finds in the tables, unless it is "",
// and the ends in the log.
func (v *view) closings(ctx context.Context, nodes []*node, name string, args ...any) iter.Seq2[entity.Closing, error] {
	return func(yield func(entity.Closing, error) bool) {
		v.random(false)
		stopped := false
		hand := func(block int64, key entity.Key, from int64) error {
			if stopped = !yield(entity.Closing{Block: uint64(block), Key: key, From: uint64(from)}, nil); stopped {
				return statement.ErrEnough
			}
			return nil
		}
		row := func(rows driver.Rows) error {
			var block, from int64
			var key []byte
			if err := rows.Scan(&block, &key, &from); err != nil {
				return err
			}
			if len(key) != len(entity.Key{}) {
				return fmt.Errorf("%w: entity key of %d bytes", driver.ErrCorrupt, len(key))
			}
			return hand(block, entity.Key(key), from)
		}
		var err error
		if name != "" {
			err = v.l.sql.Each(ctx, v.q, name, args, row)
		}
		for _, n := range nodes {
			for i := 0; i < len(n.changes) && !stopped && err == nil; i++ {
				if c := &n.changes[i]; c.oldID != 0 {
					err = hand(n.block, c.key, c.oldFrom)
				}
			}
		}
		if err != nil && !stopped {
			yield(entity.Closing{}, err)
		}
	}
}

var _ layout.Prefetched = (*Layout)(nil)

// lastSeen is the blocks of the log that were not merged when this process last
// opened or changed the store. The next transaction probably finds the same.
type lastSeen struct{ nodes atomic.Pointer[[]*node] }

func (s *lastSeen) set(nodes []*node) { s.nodes.Store(&nodes) }

func (s *lastSeen) get() []*node {
	if nodes := s.nodes.Load(); nodes != nil {
		return *nodes
	}
	return nil
}

// PrefetchWrite implements layout.Prefetched: the queries of Writer and Prior. The
// payloads of versions that are not in the log are missing, because their numbers
// are in the versions.
func (l *Layout) PrefetchWrite(block uint64, needs map[entity.Key]entity.Need) []driver.Prefetch {
	expected := []driver.Prefetch{l.sql.Prefetch("progress")}
	nodes, at := l.lastSeen.get(), int64(min(block, entity.MaxBlock))
	var hashes, contents []any
	for _, key := range sortedKeys(needs) {
		switch c := lookup(nodes, at, key); {
		case c == nil:
			hashes = append(hashes, hashKey(key))
		case c.newID != 0 && c.next.visible(at) && needs[key]&entity.NeedContent != 0 && c.next.content != 0:
			contents = append(contents, c.next.content)
		}
	}
	expected = append(expected, l.sql.PrefetchIn("current_by_key", hashes, nil)...)
	expected = append(expected, l.sql.PrefetchIn("current_by_id", l.keys.newest().ids(hashes), nil)...)
	return append(expected, l.sql.PrefetchIn("contents", contents, nil)...)
}

// PrefetchView implements layout.Prefetched: the queries of View and of Get.
func (l *Layout) PrefetchView(block uint64, keys []entity.Key) []driver.Prefetch {
	expected := []driver.Prefetch{l.sql.Prefetch("progress")}
	nodes, at := l.lastSeen.get(), int64(min(block, entity.MaxBlock))
	past := len(nodes) > 0 && at < nodes[len(nodes)-1].block
	for _, key := range keys {
		switch c := lookup(nodes, at, key); {
		case c != nil && c.newID != 0 && c.next.visible(at) && c.next.content != 0:
			expected = append(expected, l.sql.PrefetchIn("contents", []any{c.next.content}, nil)...)
		case c == nil && !l.opts.Apart:
			statements, arg := visibleByKey, any(hashKey(key))
			if waiting := l.keys.newest().ids([]any{arg}); len(waiting) > 0 {
				statements, arg = visibleByID, waiting[0]
			}
			for i, name := range statements {
				if i == 0 || past {
					expected = append(expected, l.sql.Prefetch(name, arg, at, at))
				}
			}
		}
	}
	return expected
}

// sortedKeys returns keys in ascending order, because an expected query answers
// another only when the arguments of both are the same.
func sortedKeys[V any](keys map[entity.Key]V) []entity.Key {
	return slices.SortedFunc(maps.Keys(keys), func(a, b entity.Key) int { return bytes.Compare(a[:], b[:]) })
}
