package compact

import (
	"context"
	"errors"
	"slices"
	"sort"

	"github.com/varvedb/varve/store/driver"
)

// ahead reads the tables as plans leave them that may be followed or not, wholly or
// in part: what a plan changes is taken from the plan, and the rest from a view in
// which nothing else has changed it.
type ahead struct {
	l    *Layout
	q    driver.Querier
	line []*plan // one after another

	// Chunks from this one on hold only entities that the batch makes; 0: unknown.
	unused int64
}

// versions reads rows of current_versions.
func (t ahead) versions(ctx context.Context, ids []int64, see func(*version)) error {
	var stored []any
	for _, id := range ids {
		if v, ok := t.version(id); !ok {
			stored = append(stored, id)
		} else if v != nil {
			see(v)
		}
	}
	return t.l.eachQuery(ctx, t.q, "current_by_id", 1, stored, nil, func(rows driver.Rows) error {
		v, err := scanVersion(rows)
		if err == nil {
			see(v)
		}
		return err
	})
}

// version returns what the plans make of a row of current_versions: nil when it is
// gone.
func (t ahead) version(id int64) (v *version, ok bool) {
	for _, pl := range slices.Backward(t.line) {
		if s := pl.stories[id]; s != nil {
			return s.now, true
		}
	}
	return nil, false
}

// resolve reads the sets that edits change and works out what becomes of them:
// sets to write in any number of steps, and those to write in the last.
func (t ahead) resolve(ctx context.Context, g grouped) (sets, final []set, err error) {
	sets = make([]set, 0, len(g.groups))
	chunks := make([]chunk, min(resolvePage, len(g.groups)))
	planned := t.cursors()
	var room []byte // many sets share an allocation
	for from := 0; from < len(g.groups); {
		to := from + 1
		for to < len(g.groups) && to-from < resolvePage && g.groups[to].past == g.groups[from].past {
			to++
		}
		clear(chunks[:to-from])
		if err := t.readSets(ctx, planned, g.groups[from:to], chunks); err != nil {
			return nil, nil, err
		}
		for n := from; n < to; n++ {
			c := &chunks[n-from]
			g.apply(n, c)
			if cap(room)-len(room) < chunkBytes {
				room = make([]byte, 0, 128*chunkBytes)
			}
			start := len(room)
			room = c.appendTo(room)
			s := set{g.groups[n].setKey, g.groups[n].blob, room[start:len(room):len(room)]}
			if g.groups[n].final {
				final = append(final, s)
			} else {
				sets = append(sets, s)
			}
		}
		from = to
	}
	return sets, final, nil
}

// resolvePage is how many sets are read at once.
const resolvePage = 256

// readSets reads the sets of groups of one table. The groups come in order.
func (t ahead) readSets(ctx context.Context, planned []setCursor, groups []editGroup, chunks []chunk) error {
	args := make([]any, 0, 3*len(groups))
next:
	for i := range groups {
		g := &groups[i]
		if t.unused > 0 && g.chunk >= t.unused {
			continue
		}
		for c := range planned {
			if ids, ok := planned[c].find(&g.setKey); ok {
				if err := chunks[i].merge(ids); err != nil {
					return err
				}
				continue next
			}
		}
		args = append(args, g.attr, g.blob, g.chunk)
	}
	return t.l.eachQuery(ctx, t.q, groups[0].table()+"_postings_list", 3, args, nil, func(rows driver.Rows) error {
		key := setKey{past: groups[0].past}
		var value, ids []byte
		if err := rows.Scan(&key.attr, &value, &key.chunk, &ids); err != nil {
			return err
		}
		key.value = string(value)
		n, ok := slices.BinarySearchFunc(groups, &key, func(g editGroup, k *setKey) int { return g.compare(k) })
		if !ok {
			return nil
		}
		return chunks[n].merge(ids)
	})
}

// setCursor finds sets in a list in order of keys that are asked for in order.
type setCursor struct{ rest []set }

func (c *setCursor) find(k *setKey) (ids []byte, ok bool) {
	for len(c.rest) > 0 {
		switch d := c.rest[0].compare(k); {
		case d == 0:
			return c.rest[0].ids, true
		case d > 0:
			return nil, false
		}
		c.rest = c.rest[1:]
	}
	return nil, false
}

// cursors returns those of the sets that the plans make, the last plan's first.
func (t ahead) cursors() (list []setCursor) {
	for _, pl := range slices.Backward(t.line) {
		list = append(list, setCursor{pl.sets}, setCursor{pl.final})
	}
	return list
}

// expiring reads the sets of current entities that expire at or before a block, in
// their order, until see returns false.
func (t ahead) expiring(ctx context.Context, end int64, see func(c *chunk, number int64) bool) error {
	above := []byte(encodeNumber(uint64(end + 1)))
	planned := t.expirations(string(above))
	visit := func(s *set) error {
		var c chunk
		if err := c.merge(s.ids); err != nil {
			return err
		}
		if !see(&c, s.chunk) {
			return errStopped
		}
		return nil
	}
	args := []any{int64(attrExpiration), []byte(encodeNumber(0)), above, int64(noLimit)}
	err := eachRow(ctx, t.q, t.l.sql["current_postings_range"], args, func(rows driver.Rows) error {
		row := set{setKey: setKey{term: term{attr: attrExpiration}}}
		var value []byte
		if err := rows.Scan(&value, &row.chunk, &row.ids); err != nil {
			return err
		}
		row.value = string(value)
		for len(planned) > 0 && planned[0].compare(&row.setKey) < 0 {
			if err := visit(&planned[0]); err != nil {
				return err
			}
			planned = planned[1:]
		}
		if len(planned) > 0 && planned[0].setKey == row.setKey {
			row, planned = planned[0], planned[1:]
		}
		return visit(&row)
	})
	for i := 0; err == nil && i < len(planned); i++ {
		err = visit(&planned[i])
	}
	if errors.Is(err, errStopped) {
		return nil
	}
	return err
}

// expirations returns the sets of expirations below a value that the plans make, in
// order.
func (t ahead) expirations(above string) (list []set) {
	first := setKey{term: term{attr: attrExpiration}}
	last := setKey{term: term{attr: attrExpiration, value: above}}
	for _, pl := range slices.Backward(t.line) {
		for _, sets := range [][]set{pl.sets, pl.final} {
			i := sort.Search(len(sets), func(i int) bool { return sets[i].compare(&first) >= 0 })
			for ; i < len(sets) && sets[i].compare(&last) < 0; i++ {
				list = append(list, sets[i])
			}
		}
	}
	// The sort is stable, so the last plan's comes first of its equals.
	slices.SortStableFunc(list, func(a, b set) int { return a.compare(&b.setKey) })
	return slices.CompactFunc(list, func(a, b set) bool { return a.setKey == b.setKey })
}
