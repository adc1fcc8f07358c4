package compact

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
)

// errStopped ends the reading of rows early.
var errStopped = errors.New("stopped")

// Check implements layout.Layout. It reads one view only: others may be at
// another point of the merge. That current versions and current postings say
// the same is found by adding up a hash of each entry, for each attribute, in
// memory that does not grow; which entry it is that differs is not.
func (l *Layout) Check(ctx context.Context, q, _, _ driver.Querier, report func(problem string) bool) error {
	v, err := l.readView(ctx, q, entity.MaxBlock)
	if err != nil {
		return err
	}
	v.overlay = v.chain.overlay(&v.p, v.at)
	c := &checker{v: v, report: report}
	err = c.run(ctx)
	if errors.Is(err, errStopped) {
		return nil
	}
	return err
}

type checker struct {
	v      *view
	report func(problem string) bool
}

func (c *checker) say(format string, args ...any) error {
	if !c.report(fmt.Sprintf(format, args...)) {
		return errStopped
	}
	return nil
}

func (c *checker) run(ctx context.Context) error {
	sums, live, err := c.versions(ctx)
	if err != nil {
		return err
	}
	if live != c.v.p.live {
		if err := c.say("%d current versions, recorded are %d", live, c.v.p.live); err != nil {
			return err
		}
	}
	if err := c.progress(ctx); err != nil {
		return err
	}
	for tree := range c.v.p.trees {
		if err := c.runs(ctx, tree); err != nil {
			return err
		}
	}
	if err := c.postings(ctx, sums); err != nil {
		return err
	}
	for attr, sum := range sums {
		if sum != 0 {
			if err := c.say("attribute %d: its postings are not those of the current versions", attr); err != nil {
				return err
			}
		}
	}
	if err := c.closed(ctx); err != nil {
		return err
	}
	if err := c.missing(ctx); err != nil {
		return err
	}
	return c.intervals(ctx)
}

// entrySum is a number for one entry of a posting. Sums of them tell sets apart.
func entrySum(attr int64, value string, id int64) uint64 {
	buf := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, uint64(attr)), uint64(id))
	sum := sha256.Sum256(append(buf, value...))
	return binary.BigEndian.Uint64(sum[:8])
}

// versions adds up what the postings of the current versions must be, by
// attribute. A merge that is half done may have moved those of entities that
// the log touches.
func (c *checker) versions(ctx context.Context) (map[int64]uint64, int64, error) {
	sums, live := map[int64]uint64{}, int64(0)
	err := c.v.l.pages(ctx, c.v.q, "scan_current_above", []any{int64(none)}, false, func(list []*version) error {
		live += int64(len(list))
		for _, r := range list {
			if c.v.overlay.touches(r.id) {
				continue
			}
			terms, err := r.terms()
			if err != nil {
				return c.say("entity %s, version of block %d: %v", r.key, r.from, err)
			}
			for _, t := range terms {
				sums[t.attr] += entrySum(t.attr, t.value, r.id)
			}
		}
		return nil
	})
	return sums, live, err
}

// runs compares how many pages runs have with what is recorded.
func (c *checker) runs(ctx context.Context, tree int) error {
	t := &c.v.p.trees[tree]
	wanted := map[int64]int64{}
	for _, r := range t.runs {
		wanted[r.no] = r.pages
	}
	for _, job := range t.jobs {
		wanted[job.out.no] = job.out.pages
	}
	unknown := map[int64]bool{t.writing: t.written != t.writing} // how many pages they have
	for _, r := range t.dropped {
		unknown[r.no] = true
	}
	err := eachRow(ctx, c.v.q, c.v.l.sql[treeNames[tree]+"_runs"], nil, func(rows driver.Rows) error {
		var no, pages int64
		if err := rows.Scan(&no, &pages); err != nil {
			return err
		}
		want, known := wanted[no]
		delete(wanted, no)
		if unknown[no] || known && want == pages {
			return nil
		}
		return c.say("%s postings: run %d has %d pages, recorded are %d", treeNames[tree], no, pages, want)
	})
	if err != nil {
		return err
	}
	for no, pages := range wanted {
		if pages != 0 {
			if err := c.say("%s postings: run %d has no pages, recorded are %d", treeNames[tree], no, pages); err != nil {
				return err
			}
		}
	}
	return nil
}

// postings subtracts what the postings are.
func (c *checker) postings(ctx context.Context, sums map[int64]uint64) error {
	return c.each(ctx, currentTree, func(attr int64, value []byte, id int64) {
		if !c.v.overlay.touches(id) {
			sums[attr] -= entrySum(attr, string(value), id)
		}
	})
}

// wanted is a value of a closed version that is looked for in the postings.
type wanted struct{ id, attr int64 }

// maxWanted bounds how many are looked for at once: for each such number all postings
// are read.
const maxWanted = 1 << 19

// closed looks for every value of a closed version in the postings.
func (c *checker) closed(ctx context.Context) error {
	all := map[uint64]wanted{}
	err := c.v.l.pages(ctx, c.v.q, "scan_closed", nil, true, func(list []*version) error {
		for _, r := range list {
			if r.to > r.expires {
				if err := c.say("entity %s, version of block %d: it ends at block %d, above its expiration %d", r.key, r.from, r.to, r.expires); err != nil {
					return err
				}
			}
			terms, err := r.terms()
			if err != nil {
				return c.say("entity %s, version of block %d: %v", r.key, r.from, err)
			}
			for _, t := range terms {
				all[entrySum(t.attr, t.value, r.id)] = wanted{r.id, t.attr}
			}
		}
		if len(all) < maxWanted {
			return nil
		}
		return c.find(ctx, all)
	})
	if err != nil {
		return err
	}
	return c.find(ctx, all)
}

// find takes out what the postings have of what is wanted, and reports the rest.
func (c *checker) find(ctx context.Context, all map[uint64]wanted) error {
	if len(all) == 0 {
		return nil
	}
	for tree := range c.v.p.trees {
		err := c.each(ctx, tree, func(attr int64, value []byte, id int64) {
			delete(all, entrySum(attr, string(value), id))
		})
		if err != nil {
			return err
		}
	}
	for _, w := range all {
		if err := c.say("entity number %d: a value of attribute %d of a closed version is in no posting", w.id, w.attr); err != nil {
			return err
		}
	}
	clear(all)
	return nil
}

// each calls f with all that a tree says.
func (c *checker) each(ctx context.Context, tree int, f func(attr int64, value []byte, id int64)) error {
	var value []byte
	var ids []int64
	err := c.v.l.stream(ctx, c.v.q, tree, &c.v.p.trees[tree], nil, everyKey, func(p *posting) (err error) {
		var attr int64
		if attr, value, ids, err = p.decode(value[:0], ids[:0]); err != nil {
			return err
		}
		for _, id := range ids {
			f(attr, value, id)
		}
		return nil
	})
	if errors.Is(err, driver.ErrCorrupt) {
		return c.say("postings: %v", err)
	}
	return err
}

// missing finds versions without their payload or their key.
func (c *checker) missing(ctx context.Context) error {
	err := eachRow(ctx, c.v.q, c.v.l.sql["missing_contents"], nil, func(rows driver.Rows) error {
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
	return eachRow(ctx, c.v.q, c.v.l.sql["key_hashes"], nil, func(rows driver.Rows) error {
		var key []byte
		var id, hash int64
		var has bool
		if err := rows.Scan(&key, &id, &has, &hash); err != nil {
			return err
		}
		if has && len(key) == len(entity.Key{}) && hash == hashKey(entity.Key(key)) {
			return nil
		}
		return c.say("entity 0x%x: its key does not lead to number %d", key, id)
	})
}

// intervals finds versions that end before they begin, overlap, or leave a gap
// within one entity.
func (c *checker) intervals(ctx context.Context) error {
	var lastKey []byte
	var lastID, lastFrom, lastTo int64
	return eachRow(ctx, c.v.q, c.v.l.sql["intervals"], nil, func(rows driver.Rows) error {
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

// progress compares what the one row of counters says with what is there: a
// number too low would be given twice.
func (c *checker) progress(ctx context.Context) error {
	p, backlog := &c.v.p, int64(0)
	last := p.tip
	for _, n := range c.v.nodes {
		backlog += int64(len(n.changes))
		last = n.tip
	}
	if backlog != p.backlog || last != p.tip {
		return c.say("%d changes are not merged, recorded are %d, or their last block is another", backlog, p.backlog)
	}
	var id, content, name int64
	if err := driver.QueryRow(ctx, c.v.q, c.v.l.sql["highest_numbers"], nil, &id, &content, &name); err != nil {
		return err
	}
	if id >= p.nextID || content >= p.nextContent || p.nextID < 1 || p.nextContent < 1 || name > p.names && name >= firstName {
		return c.say("entity %d, payload %d and name %d are there, recorded as next are %d and %d, as the highest name %d",
			id, content, name, p.nextID, p.nextContent, p.names)
	}
	return nil
}
