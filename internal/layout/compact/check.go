package compact

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"iter"
	"math"
	"slices"

	"github.com/varvedb/varve/internal/bitmap"
	"github.com/varvedb/varve/internal/lsm"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
)

// Check implements layout.Layout. It reads one view only: others may be at another
// point of the merge. It reads each table once, in the table's order, so that
// nothing is sorted. Versions say which postings and keys there must be. Hashes of
// these are added up, by attribute, and hashes of what is there are subtracted: a
// sum of zero means that both are the same. Memory grows by one bit an entity. Where
// a sum is not zero, slower reads name what is missing.
func (l *Layout) Check(ctx context.Context, q, _, _ driver.Querier, whole bool, report func(problem string) bool) error {
	v, err := l.newView(ctx, q, entity.MaxBlock)
	if err != nil {
		return err
	}
	if err := l.loadNames(ctx, q, v.names, v.p.names); err != nil {
		return err
	}
	c := &checker{view: v, seed: maphash.MakeSeed(), sums: map[uint32]uint64{}, ids: bitmap.Set{}, wanted: map[uint64]wanted{}}
	c.say = func(format string, args ...any) error {
		if !report(fmt.Sprintf(format, args...)) {
			return errEnough
		}
		return nil
	}
	steps := []func(context.Context) error{c.versions, c.progress, c.runs, c.postings, c.keys, c.overlaps}
	if !whole {
		steps = append(steps, c.missing)
	}
	for _, f := range steps {
		if err := f(ctx); err != nil {
			if errors.Is(err, errEnough) {
				return nil
			}
			return err
		}
	}
	return nil
}

// errEnough ends a check whose caller wants no more problems.
var errEnough = errors.New("enough problems")

type checker struct {
	*view
	say    func(format string, args ...any) error // of a problem; errEnough after enough
	seed   maphash.Seed
	live   int64
	sums   map[uint32]uint64 // by space: of entries that versions call for, less those of postings
	keySum uint64            // the same of keys
	ids    bitmap.Set        // of entities with versions in the tables
	shared []int64           // hashes of keys that wait and of other entities
	wanted map[uint64]wanted // by sum
}

// wanted is a value of a closed version that is looked for in the postings.
type wanted struct {
	id   int64
	attr uint32
}

// maxWanted bounds how many are looked for at once: for each such number all postings are read.
const maxWanted = 1 << 19

// sum is a number for one entry of a posting. The seed differs from check to
// check, so no data can be made whose sums agree.
func (c *checker) sum(t lsm.Term, id int64) uint64 {
	t.Space &^= past
	return maphash.Comparable(c.seed, struct {
		t  lsm.Term
		id int64
	}{t, id})
}

func (c *checker) sumKey(hash, id int64) uint64 {
	return maphash.Comparable(c.seed, [2]int64{hash, id})
}

// versions reads the versions of each entity and compares them with each other, and
// adds up what postings and keys must be.
func (c *checker) versions(ctx context.Context) error {
	seen := map[lsm.Term]bool{}
	err := c.l.eachState(ctx, c.q, c.p.nextID, func(id int64, s *state) error {
		if s.current != nil {
			c.live++
		}
		all := slices.Clone(s.all())
		slices.SortFunc(all, func(a, b *version) int { return cmp.Compare(a.from, b.from) })
		if err := c.intervals(all); err != nil {
			return err
		}

		// All versions of an entity have one key.
		c.ids.Add(id)
		for i, v := range all {
			if i == 0 || v.key != all[i-1].key {
				c.keySum += c.sumKey(hashKey(v.key), id)
			}
		}

		clear(seen)
		for _, v := range slices.Backward(s.all()) { // the current one first
			terms, err := c.terms(v)
			if err != nil {
				return err
			}
			c.callFor(terms, id, v == s.current, seen)
		}
		return c.someClosed(ctx)
	})
	if err == nil && c.live != c.p.live {
		err = c.say("%d current versions, recorded are %d", c.live, c.p.live)
	}
	return err
}

// callFor adds up the postings that a version's terms call for. Postings have the
// terms of the current version, and in the past the terms that only closed versions
// have; seen are the terms that were counted. A merge that is half done may have
// moved postings of entities that the log touches: their terms are looked for.
func (c *checker) callFor(terms []lsm.Term, id int64, current bool, seen map[lsm.Term]bool) {
	touched := c.overlay().touches(id)
	for _, t := range terms {
		switch {
		case current:
			seen[t] = true
			if !touched {
				c.sums[t.Space] += c.sum(t, id)
			}
		case touched:
			c.wanted[c.sum(t, id)] = wanted{id, t.Space}
		case !seen[t]:
			seen[t] = true
			c.sums[t.Space|past] += c.sum(t, id)
		}
	}
}

// terms returns what a version is found by; of torn data, as far as it can be read.
func (c *checker) terms(v *version) ([]lsm.Term, error) {
	terms, err := v.terms()
	if err != nil {
		err = c.say("entity %s, version of block %d: %v", v.key, v.from, err)
	}
	return terms, err
}

// intervals finds versions of one entity that end before they begin, overlap, or
// leave a gap.
func (c *checker) intervals(all []*version) error {
	for i, v := range all {
		problem := ""
		switch {
		case v.to < v.from || v.to > v.expires:
			problem = fmt.Sprintf("it ends at block %d, its expiration is %d", v.to, v.expires)
		case i > 0 && all[i-1].to > v.from:
			problem = fmt.Sprintf("it begins before that of block %d ends at %d", all[i-1].from, all[i-1].to)
		case i > 0 && all[i-1].to < v.from:
			problem = fmt.Sprintf("between it and that of block %d one is missing", all[i-1].from)
		default:
			continue
		}
		if err := c.say("entity %s, version of block %d: %s", v.key, v.from, problem); err != nil {
			return err
		}
	}
	return nil
}

// runs compares how many pages runs have with what is recorded.
func (c *checker) runs(ctx context.Context) error {
	var keys []int64
	for _, r := range c.p.keys.runs {
		keys = append(keys, r.no)
	}
	return c.l.postings.Check(ctx, c.q, &c.p.tree, keys, c.say)
}

// postings subtracts what the postings are. Where the past is not what closed
// versions call for, it looks for each of their values.
func (c *checker) postings(ctx context.Context) error {
	torn, err := c.each(ctx, func(t lsm.Term, id int64) {
		if !c.overlay().touches(id) {
			c.sums[t.Space] -= c.sum(t, id)
		} else if len(c.wanted) > 0 {
			delete(c.wanted, c.sum(t, id))
		}
	})
	if err != nil || torn {
		return err
	}
	if err := c.notFound(); err != nil {
		return err
	}
	differs := false
	for space, sum := range c.sums {
		if sum == 0 {
			continue
		}
		if space&past != 0 {
			differs = true
			continue
		}
		if err := c.say("attribute %d: its postings are not those of the current versions", space); err != nil {
			return err
		}
	}
	if !differs {
		return nil
	}
	err = c.l.eachState(ctx, c.q, c.p.nextID, func(id int64, s *state) error {
		for _, v := range s.closed {
			terms, _ := v.terms() // reported before
			for _, t := range terms {
				c.wanted[c.sum(t, id)] = wanted{id, t.Space}
			}
		}
		return c.someClosed(ctx)
	})
	if err != nil {
		return err
	}
	return c.closed(ctx)
}

// someClosed looks for what is wanted when that is much.
func (c *checker) someClosed(ctx context.Context) error {
	if len(c.wanted) < maxWanted {
		return nil
	}
	return c.closed(ctx)
}

// closed takes out what the postings have of what is wanted, and reports the rest.
func (c *checker) closed(ctx context.Context) error {
	torn, err := c.each(ctx, func(t lsm.Term, id int64) { delete(c.wanted, c.sum(t, id)) })
	if err != nil || torn {
		return err
	}
	return c.notFound()
}

// notFound reports what is still wanted.
func (c *checker) notFound() error {
	for _, w := range c.wanted {
		if err := c.say("entity number %d: a value of attribute %d of a closed version is in no posting", w.id, w.attr); err != nil {
			return err
		}
	}
	clear(c.wanted)
	return nil
}

// each calls f with all that postings say, but in the past only with what is not
// said of the present too: a term may come back to an entity, and then it stays in
// the past. It reads both halves of the tree in step, because a term has the same
// place in each. It reports damage of a page, after which nothing is known.
func (c *checker) each(ctx context.Context, f func(t lsm.Term, id int64)) (torn bool, err error) {
	var now, was bitmap.Chunk
	var ids []int64
	give := func(p *lsm.Posting) (err error) {
		ids, err = p.AppendIDs(ids[:0])
		t := lsm.Term{Space: p.Space, Value: string(p.Value)}
		for _, id := range ids {
			f(t, id)
		}
		return err
	}
	err = func() error {
		next, stop := iter.Pull2(c.l.postings.Walk(ctx, c.q, &c.p.tree, lsm.Spaces(past, math.MaxUint32), false))
		defer stop()
		old, err, more := next()
		for p, perr := range c.l.postings.Walk(ctx, c.q, &c.p.tree, lsm.Spaces(0, past), false) {
			if err = errors.Join(err, perr); err != nil {
				return err
			}
			where := -1
			for more && where < 0 {
				where = cmp.Or(cmp.Compare(old.Space&^past, p.Space), bytes.Compare(old.Value, p.Value), cmp.Compare(old.Chunk, p.Chunk))
				if where == 0 {
					clear(now[:])
					clear(was[:])
					if err := errors.Join(now.Merge(p.IDs), was.Merge(old.IDs)); err != nil {
						return err
					}
					was.Subtract(&now)
					old.IDs = was.AppendTo(nil)
				}
				if where <= 0 {
					if err := give(old); err != nil {
						return err
					}
					if old, err, more = next(); err != nil {
						return err
					}
				}
			}
			if err := give(p); err != nil {
				return err
			}
		}
		for ; more; old, err, more = next() {
			if err == nil {
				err = give(old)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}()
	if errors.Is(err, driver.ErrCorrupt) {
		return true, c.say("postings: %v", err)
	}
	return false, err
}

// keys subtracts the keys that lead to the entities of the tables. A merge that is
// half done has written keys of others. Where the sum is not zero, each version is
// compared with its key.
func (c *checker) keys(ctx context.Context) error {
	lists, err := c.l.recentKeys(ctx, c.q, &c.p.keys)
	if errors.Is(err, driver.ErrCorrupt) {
		return c.say("%v", err)
	}
	if err != nil {
		return err
	}

	// Keys that wait may be in the table already, and count once. Hashes that a
	// waiting key shares with another entity's are not all in the table, so
	// overlaps has to be given them.
	waiting := map[int64][]int64{} // entities by hash
	for _, list := range lists {
		for _, e := range list.entries {
			if len(waiting[e.hash]) > 0 {
				c.shared = append(c.shared, e.hash)
			}
			waiting[e.hash] = append(waiting[e.hash], e.id)
		}
	}
	lead := func(hash, id int64) {
		if c.ids.Has(id) {
			c.keySum -= c.sumKey(hash, id)
		}
	}
	err = c.l.sql.Each(ctx, c.q, "keys", nil, func(rows driver.Rows) error {
		var hash, id int64
		if err := rows.Scan(&hash, &id); err != nil {
			return err
		}
		if ids := waiting[hash]; len(ids) > 0 {
			waiting[hash] = slices.DeleteFunc(ids, func(other int64) bool { return other == id })
			c.shared = append(c.shared, hash)
		}
		lead(hash, id)
		return nil
	})
	for hash, ids := range waiting {
		for _, id := range ids {
			lead(hash, id)
		}
	}
	if err != nil || c.keySum == 0 {
		return err
	}
	return c.l.sql.Each(ctx, c.q, "key_hashes", nil, func(rows driver.Rows) error {
		var key []byte
		var id, hash int64
		var has bool
		if err := rows.Scan(&key, &id, &has, &hash); err != nil {
			return err
		}
		if len(key) == len(entity.Key{}) {
			right := hashKey(entity.Key(key))
			if hash == right && has || !has && slices.Contains(lists.ids([]any{right}), any(id)) {
				return nil
			}
		}
		return c.say("entity 0x%x: its key does not lead to number %d", key, id)
	})
}

// overlaps finds versions of one key that overlap though they are of different
// entities: one that was made, ended, and made again. Where a key is missing, which
// keys reports, an overlap may be missed.
func (c *checker) overlaps(ctx context.Context) error {
	for some := range slices.Chunk(c.shared, maxPerStatement) {
		hashes := make([]any, len(some))
		for i, hash := range some {
			hashes[i] = hash
		}
		if err := c.overlapping(ctx, hashes); err != nil {
			return err
		}
	}
	for above := int64(math.MinInt64); ; {
		var hashes []any
		err := c.l.sql.Each(ctx, c.q, "shared_hashes", []any{above, int64(maxPerStatement)}, func(rows driver.Rows) error {
			err := rows.Scan(&above)
			hashes = append(hashes, above)
			return err
		})
		if err != nil || len(hashes) == 0 {
			return err
		}
		if err := c.overlapping(ctx, hashes); err != nil {
			return err
		}
	}
}

// overlapping finds the overlaps among the entities of some hashes.
func (c *checker) overlapping(ctx context.Context, hashes []any) error {
	var all []*version
	for _, current := range []bool{true, false} {
		err := c.versionsOfKeys(ctx, current, hashes, func(v *version) error {
			v.data = nil
			all = append(all, v)
			return nil
		})
		if err != nil {
			return err
		}
	}
	slices.SortFunc(all, func(a, b *version) int {
		return cmp.Or(bytes.Compare(a.key[:], b.key[:]), cmp.Compare(a.from, b.from))
	})
	for i, v := range all {
		if last := all[max(i-1, 0)]; last.key == v.key && last.id != v.id && last.to > v.from {
			err := c.say("entity %s, version of block %d: it begins before that of block %d ends at %d", v.key, v.from, last.from, last.to)
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// missing finds versions without their payload.
func (c *checker) missing(ctx context.Context) error {
	return c.l.sql.Each(ctx, c.q, "missing_contents", nil, func(rows driver.Rows) error {
		var key []byte
		var from, no int64
		if err := rows.Scan(&key, &from, &no); err != nil {
			return err
		}
		return c.say("entity 0x%x, version of block %d: its payload %d is missing", key, from, no)
	})
}

// progress compares what the one row of counters says with what is there: a number too low would be given twice.
func (c *checker) progress(ctx context.Context) error {
	p, backlog := &c.p, int64(0)
	last := p.tip
	for _, n := range c.nodes {
		backlog += int64(len(n.changes))
		last = n.tip
	}
	if backlog != p.backlog || last != p.tip {
		return c.say("%d changes are not merged, recorded are %d, or their last block is another", backlog, p.backlog)
	}
	var lowest, id, content, name int64
	if err := c.l.sql.Row(ctx, c.q, "number_bounds", nil, &lowest, &id, &content, &name); err != nil {
		return err
	}
	if lowest < 1 {
		return c.say("entity %d is there, the lowest number is 1", lowest)
	}
	if id >= p.nextID || content >= p.nextContent || p.nextID < 1 || p.nextContent < 1 || name > p.names && name >= firstName {
		return c.say("entity %d, payload %d and name %d are there, recorded as next are %d and %d, as the highest name %d",
			id, content, name, p.nextID, p.nextContent, p.names)
	}
	return nil
}
