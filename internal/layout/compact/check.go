package compact

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/varvedb/varve/internal/lsm"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
)

// Check implements layout.Layout. It reads one view only: others may be at another point of the merge. That current
// versions and current postings say the same is found by adding up a hash of each entry, for each attribute, in
// memory that does not grow; which entry it is that differs is not.
func (l *Layout) Check(ctx context.Context, q, _, _ driver.Querier, report func(problem string) bool) error {
	v, err := l.newView(ctx, q, entity.MaxBlock)
	if err != nil {
		return err
	}
	if err := l.loadNames(ctx, q, v.names, v.p.names); err != nil {
		return err
	}
	c := &checker{view: v, sums: map[uint32]uint64{}, wanted: map[uint64]wanted{}, say: func(format string, args ...any) error {
		if !report(fmt.Sprintf(format, args...)) {
			return errEnough
		}
		return nil
	}}
	for _, f := range []func(context.Context) error{c.versions, c.progress, c.runs, c.postings, c.closed, c.missing, c.intervals} {
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
	live   int64
	sums   map[uint32]uint64 // of entries of current versions, less those of postings, by attribute
	wanted map[uint64]wanted // by entrySum
}

// wanted is a value of a closed version that is looked for in the postings.
type wanted struct {
	id   int64
	attr uint32
}

// maxWanted bounds how many are looked for at once: for each such number all postings are read.
const maxWanted = 1 << 19

// entrySum is a number for one entry of a posting. Sums of them tell sets apart.
func entrySum(attr uint32, value []byte, id int64) uint64 {
	buf := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, uint64(attr)), uint64(id))
	sum := sha256.Sum256(append(buf, value...))
	return binary.BigEndian.Uint64(sum[:8])
}

// versions adds up what the postings of current versions must be, and looks for the values of closed ones. A merge
// that is half done may have moved postings of entities that the log touches.
func (c *checker) versions(ctx context.Context) error {
	err := c.l.eachState(ctx, c.q, c.p.nextID, func(id int64, s *state) error {
		if s.current != nil {
			c.live++
		}
		for _, v := range s.all() {
			if v.to > v.expires {
				if err := c.say("entity %s, version of block %d: it ends at block %d, above its expiration %d", v.key, v.from, v.to, v.expires); err != nil {
					return err
				}
			}
			terms, err := v.terms()
			if err != nil {
				if err := c.say("entity %s, version of block %d: %v", v.key, v.from, err); err != nil {
					return err
				}
			}
			for _, t := range terms {
				sum := entrySum(t.Space, []byte(t.Value), id)
				if v != s.current {
					c.wanted[sum] = wanted{id, t.Space}
				} else if !c.overlay().touches(id) {
					c.sums[t.Space] += sum
				}
			}
		}
		if len(c.wanted) < maxWanted {
			return nil
		}
		return c.closed(ctx)
	})
	if err == nil && c.live != c.p.live {
		err = c.say("%d current versions, recorded are %d", c.live, c.p.live)
	}
	return err
}

// runs compares how many pages runs have with what is recorded.
func (c *checker) runs(ctx context.Context) error {
	var keys []int64
	for _, r := range c.p.keys.runs {
		keys = append(keys, r.no)
	}
	return c.l.postings.Check(ctx, c.q, &c.p.tree, keys, c.say)
}

// postings subtracts what the current postings are.
func (c *checker) postings(ctx context.Context) error {
	err := c.each(ctx, func(space uint32, value []byte, id int64) {
		if space&past == 0 && !c.overlay().touches(id) {
			c.sums[space] -= entrySum(space, value, id)
		}
	})
	for attr, sum := range c.sums {
		if sum != 0 && err == nil {
			err = c.say("attribute %d: its postings are not those of the current versions", attr)
		}
	}
	return err
}

// closed takes out what the postings have of what is wanted, and reports the rest.
func (c *checker) closed(ctx context.Context) error {
	if len(c.wanted) == 0 {
		return nil
	}
	err := c.each(ctx, func(space uint32, value []byte, id int64) {
		delete(c.wanted, entrySum(space&^past, value, id))
	})
	for _, w := range c.wanted {
		if err == nil {
			err = c.say("entity number %d: a value of attribute %d of a closed version is in no posting", w.id, w.attr)
		}
	}
	clear(c.wanted)
	return err
}

// each calls f with all that postings say.
func (c *checker) each(ctx context.Context, f func(space uint32, value []byte, id int64)) error {
	var ids []int64
	for p, err := range c.l.postings.Walk(ctx, c.q, &c.p.tree, lsm.All, false) {
		if err == nil {
			ids, err = p.AppendIDs(ids[:0])
		}
		if errors.Is(err, driver.ErrCorrupt) {
			return c.say("postings: %v", err)
		}
		if err != nil {
			return err
		}
		for _, id := range ids {
			f(p.Space, p.Value, id)
		}
	}
	return nil
}

// missing finds versions without their payload or their key.
func (c *checker) missing(ctx context.Context) error {
	err := c.l.sql.Each(ctx, c.q, "missing_contents", nil, func(rows driver.Rows) error {
		var key []byte
		var from, no int64
		if err := rows.Scan(&key, &from, &no); err != nil {
			return err
		}
		return c.say("entity 0x%x, version of block %d: its payload %d is missing", key, from, no)
	})
	if err != nil {
		return err
	}
	lists, err := c.l.recentKeys(ctx, c.q, &c.p.keys)
	if err != nil {
		if err := c.say("%v", err); err != nil {
			return err
		}
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
			if hash == right && has || !has && slices.Contains(lists.ids(nil, right), any(id)) {
				return nil
			}
		}
		return c.say("entity 0x%x: its key does not lead to number %d", key, id)
	})
}

// intervals finds versions that end before they begin, overlap, or leave a gap within one entity.
func (c *checker) intervals(ctx context.Context) error {
	var lastKey []byte
	var lastID, lastFrom, lastTo int64
	return c.l.sql.Each(ctx, c.q, "intervals", nil, func(rows driver.Rows) error {
		var key []byte
		var id, from, to, expires int64
		if err := rows.Scan(&key, &id, &from, &to, &expires); err != nil {
			return err
		}
		problem := ""
		same := lastKey != nil && bytes.Equal(key, lastKey)
		switch {
		case to < from || to > expires:
			problem = fmt.Sprintf("it ends at block %d, its expiration is %d", to, expires)
		case same && lastTo > from:
			problem = fmt.Sprintf("it begins before that of block %d ends at %d", lastFrom, lastTo)
		case same && lastID == id && lastTo < from:
			problem = fmt.Sprintf("between it and that of block %d one is missing", lastFrom)
		}
		lastKey, lastID, lastFrom, lastTo = key, id, from, to
		if problem == "" {
			return nil
		}
		return c.say("entity 0x%x, version of block %d: %s", key, from, problem)
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
	var id, content, name int64
	err := c.l.sql.Each(ctx, c.q, "highest_numbers", nil, func(rows driver.Rows) error { return rows.Scan(&id, &content, &name) })
	if err != nil {
		return err
	}
	if id >= p.nextID || content >= p.nextContent || p.nextID < 1 || p.nextContent < 1 || name > p.names && name >= firstName {
		return c.say("entity %d, payload %d and name %d are there, recorded as next are %d and %d, as the highest name %d",
			id, content, name, p.nextID, p.nextContent, p.names)
	}
	return nil
}
